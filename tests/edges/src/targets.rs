//! A target a module: `check`, and `WORDS` that inputs are made of.

pub mod accept;
pub mod access;
pub mod audit_uri;
pub mod cgroup;
pub mod connect_head;
pub mod csr;
pub mod destination;
pub mod dialect_kcp;
pub mod dialect_ocm;
pub mod exec_output;
pub mod exec_words;
pub mod front_proxy;
pub mod header_block;
pub mod identity_rules;
pub mod kubeconfig;
pub mod lengths;
pub mod link;
pub mod list_options;
pub mod location;
pub mod proxy_answer;
pub mod proxy_url;
pub mod registered;
pub mod registration;
pub mod route;
pub mod secret;
