//! Under which circumstances a run is made: the machine, the endpoint and the commit that is served.
