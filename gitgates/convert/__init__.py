"""Turn other tools' gate files into tables of ours. Cold."""
