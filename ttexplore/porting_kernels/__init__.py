"""Small kernels, one for each construct of the porting table (:mod:`ttexplore.porting`): a file holds the factory
of one kernel, which is named after the file."""
