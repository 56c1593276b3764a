"""wsigym: Gymnasium environments in which agents navigate whole-slide pathology images."""

__version__ = "0.1.0"
