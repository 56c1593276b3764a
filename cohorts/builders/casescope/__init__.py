"""CaseScope's tasks built from cases and an ontology that lie in a cohort's `casescope/` folder (arXiv 2611.15325).

ontology.py     entities, exclusion groups, grading groups
cases.py        cases with their fields, and labelled statements
distractors.py  which nine diagnoses stand beside the right one
statements.py   what statements have to be
tasks.py        the items of a1, a2, b, c, r1, g1
"""
