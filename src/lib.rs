//! fedbits
