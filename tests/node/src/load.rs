//! Clients of a cluster: they read, and one watches what is written meanwhile.
