//! An agent in this process against fake tunnel-servers: real TLS, real sockets.

mod credential;
mod destinations;
mod ending;
mod fixture;
mod linking;
mod moving;
mod outbound;
mod server;
