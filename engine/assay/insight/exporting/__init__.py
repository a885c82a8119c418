"""Results to training sets: which rows are used and why the others are not, in the form that a trainer reads, with a pedigree."""
