"""CaseScope's tasks: from several fields of one case to its diagnosis, behaviour, grade and findings."""
