"""What a lesion can be: the diagnoses of each organ, and the words for what is drawn.

Nothing here draws. The names of fields, nests and foci are those of `drawing.py`; a phrase says what its pixels show.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["BESIDE", "CATEGORIES", "CYTOLOGY", "ENTITIES", "FOCI", "HOSTS", "NESTS", "WITHIN", "Entity", "of_category"]

CATEGORIES = ("benign", "inflammatory", "in situ", "malignant")
"""The closed list of categories of a path."""


@dataclass(frozen=True)
class Entity:
    """One diagnosis: how it is drawn (`field`, `nests`, `foci`, `kind`), and how it is called."""

    diagnosis: str
    category: str
    subtype: str | None
    low: str
    """What it looks like at 2.5x."""
    field: str
    nests: tuple[str, ...]
    foci: tuple[str, ...]
    kind: str
    """The main kind of nucleus."""


_CANCER = ("pleomorphic", "mitoses", "giant", "necrosis", "embolus")
_GLANDULAR = (*_CANCER, "rosette")
_BENIGN = ("calcification", "compact", "cyst")
_LYMPHOID = ("knot", "apoptosis", "plasma")
_GRANULOMA = ("giant-cell", "knot", "abscess")

ENTITIES: dict[str, tuple[Entity, ...]] = {
    "breast": (
        Entity(
            "Invasive ductal carcinoma",
            "malignant",
            "no special type",
            "mass of ragged cell nests in pale fibrous stroma",
            "nests",
            ("solid", "crowded-glands", "nests"),
            _CANCER,
            "atypical",
        ),
        Entity(
            "Invasive lobular carcinoma",
            "malignant",
            "classic lobular",
            "field of dispersed single cells in dense collagen",
            "files",
            ("files", "nests"),
            ("pleomorphic", "mitoses", "embolus"),
            "bland",
        ),
        Entity(
            "Ductal carcinoma in situ",
            "in situ",
            "ductal",
            "group of greatly widened ducts filled with cells",
            "ducts",
            ("duct-solid", "duct-cribriform"),
            ("comedo", "mitoses", "pleomorphic"),
            "atypical",
        ),
        Entity(
            "Sclerosing adenosis",
            "benign",
            None,
            "lobulated crowd of small compressed acini",
            "acini",
            ("lobule",),
            _BENIGN,
            "cuboidal",
        ),
        Entity(
            "Lymphocytic mastitis",
            "inflammatory",
            None,
            "patchy blue infiltrate around lobules",
            "infiltrate",
            ("follicle", "cuff"),
            _LYMPHOID,
            "lymphocyte",
        ),
    ),
    "colon": (
        Entity(
            "Colonic adenocarcinoma",
            "malignant",
            "not otherwise specified",
            "mass of irregular angulated glands breaking through the wall",
            "glands",
            ("crowded-glands", "cribriform"),
            _GLANDULAR,
            "stratified",
        ),
        Entity(
            "Tubular adenoma with high-grade dysplasia",
            "in situ",
            "tubular",
            "raised zone of dark crowded tubules",
            "tubules",
            ("crowded-glands", "duct-cribriform"),
            ("mitoses", "rosette", "apoptosis"),
            "stratified",
        ),
        Entity(
            "Hyperplastic polyp",
            "benign",
            None,
            "zone of evenly widened pale crypts",
            "acini",
            ("lobule",),
            ("compact", "cyst"),
            "columnar",
        ),
        Entity(
            "Chronic active colitis",
            "inflammatory",
            None,
            "blue cell-rich expansion of the lamina propria",
            "infiltrate",
            ("follicle", "cuff"),
            ("abscess", "knot", "plasma"),
            "lymphocyte",
        ),
    ),
    "kidney": (
        Entity(
            "Urothelial carcinoma",
            "malignant",
            "conventional",
            "solid dark growth pushing the tubules aside",
            "nests",
            ("solid", "nests"),
            _CANCER,
            "atypical",
        ),
        Entity(
            "Papillary renal cell carcinoma",
            "malignant",
            "papillary",
            "mass of packed tubules in a thick capsule",
            "glands",
            ("crowded-glands", "cribriform"),
            _GLANDULAR,
            "stratified",
        ),
        Entity(
            "Oncocytoma",
            "benign",
            None,
            "pale mahogany growth of round cell nests",
            "round-nests",
            ("bland-nests",),
            ("compact", "calcification"),
            "bland",
        ),
        Entity(
            "Interstitial nephritis",
            "inflammatory",
            None,
            "blue infiltrate that parts the tubules",
            "infiltrate",
            ("cuff", "granuloma"),
            ("knot", "plasma", "abscess"),
            "lymphocyte",
        ),
    ),
    "liver": (
        Entity(
            "Hepatocellular carcinoma",
            "malignant",
            "trabecular",
            "expansile nodule of thick cell plates without portal tracts",
            "plates",
            ("solid", "trabeculae"),
            ("pleomorphic", "mitoses", "giant", "embolus"),
            "atypical",
        ),
        Entity(
            "Metastatic adenocarcinoma",
            "malignant",
            "metastatic",
            "foreign mass of glands in scarred stroma within the liver",
            "glands",
            ("crowded-glands", "cribriform"),
            _GLANDULAR,
            "stratified",
        ),
        Entity(
            "Bile duct adenoma",
            "benign",
            None,
            "small scar packed with simple ducts",
            "acini",
            ("lobule",),
            _BENIGN,
            "cuboidal",
        ),
        Entity(
            "Chronic hepatitis",
            "inflammatory",
            None,
            "portal tracts swollen by blue cells",
            "infiltrate",
            ("follicle", "cuff"),
            _LYMPHOID,
            "lymphocyte",
        ),
    ),
    "lung": (
        Entity(
            "Adenocarcinoma of the lung",
            "malignant",
            "acinar",
            "consolidated mass of irregular glands among collapsed alveoli",
            "glands",
            ("crowded-glands", "cribriform"),
            _GLANDULAR,
            "stratified",
        ),
        Entity(
            "Squamous cell carcinoma of the lung",
            "malignant",
            "non-keratinising",
            "airless mass of broad cell islands",
            "nests",
            ("solid", "nests"),
            _CANCER,
            "atypical",
        ),
        Entity(
            "Bronchial gland hyperplasia",
            "benign",
            None,
            "cluster of enlarged mucous glands beneath the airway",
            "acini",
            ("lobule",),
            ("compact", "cyst"),
            "cuboidal",
        ),
        Entity(
            "Granulomatous pneumonitis",
            "inflammatory",
            None,
            "consolidation with rounded pale nodules rimmed in blue",
            "infiltrate",
            ("granuloma", "follicle"),
            _GRANULOMA,
            "histiocyte",
        ),
    ),
    "prostate": (
        Entity(
            "Acinar adenocarcinoma of the prostate",
            "malignant",
            "acinar",
            "infiltrating crowd of small glands between large benign acini",
            "glands",
            ("crowded-glands", "cribriform", "files"),
            ("pleomorphic", "mitoses", "rosette", "embolus"),
            "atypical",
        ),
        Entity(
            "High-grade prostatic intraepithelial neoplasia",
            "in situ",
            "cribriform",
            "group of large acini darkened by heaped-up epithelium",
            "ducts",
            ("duct-cribriform", "duct-solid"),
            ("mitoses", "pleomorphic", "rosette"),
            "stratified",
        ),
        Entity(
            "Nodular hyperplasia",
            "benign",
            None,
            "rounded nodule of evenly spaced acini",
            "acini",
            ("lobule",),
            _BENIGN,
            "columnar",
        ),
        Entity(
            "Chronic prostatitis",
            "inflammatory",
            None,
            "blue infiltrate between the acini",
            "infiltrate",
            ("cuff", "follicle"),
            ("knot", "plasma", "abscess"),
            "lymphocyte",
        ),
    ),
    "skin": (
        Entity(
            "Squamous cell carcinoma of the skin",
            "malignant",
            "non-keratinising",
            "downgrowth of broad irregular cell tongues into the dermis",
            "nests",
            ("solid", "nests"),
            _CANCER,
            "atypical",
        ),
        Entity(
            "Malignant melanoma",
            "malignant",
            "nodular",
            "cell-dense nodule filling the dermis",
            "round-nests",
            ("nests", "solid"),
            ("pleomorphic", "mitoses", "giant", "embolus"),
            "vesicular",
        ),
        Entity(
            "Squamous cell carcinoma in situ",
            "in situ",
            "bowenoid",
            "group of swollen cell-filled adnexal ducts",
            "ducts",
            ("duct-solid",),
            ("mitoses", "pleomorphic", "apoptosis"),
            "atypical",
        ),
        Entity(
            "Intradermal naevus",
            "benign",
            None,
            "symmetrical dermal growth of even cell nests",
            "round-nests",
            ("bland-nests",),
            ("compact", "calcification"),
            "bland",
        ),
        Entity(
            "Granulomatous dermatitis",
            "inflammatory",
            None,
            "dermal nodules, pale in the middle and blue at the rim",
            "infiltrate",
            ("granuloma", "cuff"),
            _GRANULOMA,
            "histiocyte",
        ),
    ),
}

HOSTS = {
    "breast": ("fat and lobules", "the fibrofatty breast tissue"),
    "colon": ("the mucosa and submucosa", "the bowel wall"),
    "kidney": ("the cortical tubules", "the renal parenchyma"),
    "liver": ("the hepatocyte plates", "the liver parenchyma"),
    "lung": ("the alveoli", "the air-filled lung"),
    "prostate": ("the fibromuscular stroma", "the benign acini"),
    "skin": ("the dermal collagen", "the reticular dermis"),
}
"""What a lesion replaces."""

CYTOLOGY = {
    "atypical": ("enlarged hyperchromatic nuclei", "dark nuclei of uneven size"),
    "bland": ("uniform round nuclei", "small even nuclei with smooth outlines"),
    "columnar": ("slender basal nuclei in a single row", "regular elongated basal nuclei"),
    "cuboidal": ("small round nuclei in a single row", "regular cuboidal cells"),
    "histiocyte": ("pale oval nuclei", "plump epithelioid cells with pale nuclei"),
    "lymphocyte": ("small dark round nuclei", "mature lymphocytes"),
    "stratified": ("tall stratified cigar-shaped nuclei", "elongated crowded nuclei in several layers"),
    "vesicular": ("large pale nuclei with prominent nucleoli", "open vesicular nuclei"),
}

NESTS = {
    "solid": ("Solid sheet of cohesive cells with {cytology}", "Unbroken cellular sheet, no lumens, {cytology}"),
    "crowded-glands": (
        "Back-to-back glands with {cytology}",
        "Crowded angulated glands almost without stroma, {cytology}",
    ),
    "cribriform": (
        "Cribriform sheet with punched-out lumens and {cytology}",
        "Sieve-like epithelium, round holes, {cytology}",
    ),
    "nests": (
        "Tightly packed irregular nests with {cytology}",
        "Jigsaw of small cell islands split by thin septa, {cytology}",
    ),
    "bland-nests": ("Packed round nests with {cytology}", "Even rounded cell clusters in thin septa, {cytology}"),
    "files": (
        "Single files of discohesive cells with {cytology}",
        "Indian-file cords running with the collagen, {cytology}",
    ),
    "trabeculae": (
        "Thick trabeculae several cells wide with {cytology}",
        "Broad cell plates split by slit-like sinusoids, {cytology}",
    ),
    "duct-solid": (
        "Widened duct stuffed solid with {cytology}",
        "Distended space with a sharp rim, packed with {cytology}",
    ),
    "duct-cribriform": (
        "Widened duct bridged into a sieve, {cytology}",
        "Distended space with rigid bridges around round holes, {cytology}",
    ),
    "lobule": ("Tight lobule of small glands with {cytology}", "Rounded cluster of two-layered acini, {cytology}"),
    "follicle": ("Lymphoid follicle with a pale germinal centre", "Round lymphoid nodule, dark mantle and paler core"),
    "cuff": ("Dense perivascular cuff of lymphocytes", "Sleeve of small dark cells around a vessel"),
    "granuloma": (
        "Rounded granuloma of epithelioid cells with a lymphocyte rim",
        "Pale histiocytic nodule cuffed by lymphocytes",
    ),
}
"""What a nest looks like at 10x; {cytology} is filled from the entity's main kind."""

BESIDE = {
    "crush": "partly smeared by crush artefact",
    "lymphocytes": "with a small cluster of lymphocytes",
}
"""What else lies in a nest, by the kind of distractor."""

WITHIN = {
    "bland-nests": "among packed round nests",
    "cribriform": "in a sieve-like sheet",
    "crowded-glands": "between crowded glands",
    "cuff": "in a perivascular cuff",
    "duct-cribriform": "in a bridged widened duct",
    "duct-solid": "inside a stuffed duct",
    "files": "among single-file cords",
    "follicle": "in a lymphoid follicle",
    "granuloma": "in a granuloma",
    "lobule": "in a tight lobule",
    "nests": "among small cell islands",
    "solid": "within a solid sheet",
    "trabeculae": "between thick plates",
}
"""Where a focus lies, by the kind of its nest."""

FOCI = {
    "pleomorphic": (
        "Cluster of about {count} large bizarre nuclei with coarse chromatin",
        "Group of roughly {count} pleomorphic nuclei, dark and irregular, several with nucleoli",
    ),
    "mitoses": (
        "{count} mitotic figures among crowded enlarged nuclei",
        "Mitotic hot spot, {count} dark plates in cleared cytoplasm between crowded nuclei",
    ),
    "giant": (
        "{count} giant hyperchromatic tumour nuclei among smaller atypical cells",
        "Monstrous nuclei, {count} in all, towering over their neighbours",
    ),
    "necrosis": (
        "Pink granular necrosis with nuclear dust, rimmed by viable dark cells",
        "Necrotic focus of eosinophilic debris and karyorrhexis with a collar of tumour cells",
    ),
    "comedo": (
        "Central comedo necrosis with dark nuclear debris in a cell-filled space",
        "Plug of pink necrotic debris ringed by dark crowded cells",
    ),
    "embolus": (
        "Compact tumour plug floating in a thin-walled cleft",
        "Vascular space holding a dark cohesive cell clump",
    ),
    "rosette": (
        "Fused small glands, {count} lumens, ringed by overlapping dark nuclei",
        "{count} microglands sharing walls, nuclei heaped in several layers",
    ),
    "calcification": (
        "Laminated purple calcification, {count} concretions",
        "{count} dark blue concentric calcified bodies",
    ),
    "compact": (
        "Tightest knot of closed acini with bland crowded nuclei",
        "Small compact cell ball, no lumen, even bland nuclei",
    ),
    "cyst": (
        "Dilated space filled with pink secretion under flat epithelium",
        "Cystic gland with eosinophilic contents and attenuated lining",
    ),
    "knot": ("Knot of densely packed small lymphocytes", "Tight ball of dark round lymphocytes, nuclei touching"),
    "apoptosis": (
        "{count} apoptotic bodies with clear halos among crowded nuclei",
        "Scattered dark fragments, {count} in all, each in a clear halo, crowded nuclei around",
    ),
    "plasma": (
        "Cluster of plasma cells with eccentric clumped nuclei",
        "Plasma-cell-rich focus, pink cytoplasm beside cartwheel nuclei",
    ),
    "giant-cell": (
        "Multinucleated giant cell with a wreath of about {count} nuclei",
        "Langhans-type giant cell, some {count} nuclei around a pink body",
    ),
    "abscess": (
        "Microabscess of fragmented dark neutrophil nuclei",
        "Dense pocket of nuclear fragments and neutrophils in pink exudate",
    ),
}
"""What a focus looks like at 40x; {count} is the number that was drawn."""


def of_category(organ: str, category: str) -> tuple[Entity, ...]:
    """The organ's entities of one category; may be empty."""
    return tuple(entity for entity in ENTITIES[organ] if entity.category == category)
