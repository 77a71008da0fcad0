"""One module per finding: it computes, the notebook narrates."""
