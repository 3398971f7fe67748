//! The list as a table for people with `curl`: one line per link and per stream, in columns.

use std::fmt::Write as _;

use links::{ClusterListing, LinkListing, StreamListing};

/// Most streams shown per link; JSON has them all.
const MOST_STREAMS: usize = 50;

pub fn of(clusters: &[ClusterListing]) -> String {
    let mut out = String::new();
    if clusters.is_empty() {
        out.push_str("no cluster is linked\n");
    }
    for cluster in clusters {
        // Writing into a String cannot fail.
        let _ = writeln!(out, "{}  {} streams ({} being opened)", cluster.cluster, cluster.streams, cluster.dials);
        for agent in &cluster.agents {
            let _ = writeln!(out, "  agent {}  {}  as {}", agent.agent, agent.version, agent.credential);
            agent.links.iter().for_each(|it| link(&mut out, it));
        }
    }
    out
}

fn link(out: &mut String, link: &LinkListing) {
    let state = if link.usable { "usable" } else { "not usable" };
    let rtt = link.rtt_milliseconds.map_or_else(|| "?".to_owned(), |rtt| format!("{rtt:.1} ms"));
    let _ = writeln!(
        out,
        "    link {:<6} no. {:<3} from {:<21} {state}  age {}  rtt {rtt}  silent {:.1} s  {} streams",
        link.id,
        link.number,
        link.peer,
        age(link.age_seconds),
        link.silence_seconds,
        link.stream_count
    );
    link.streams.iter().take(MOST_STREAMS).for_each(|it| stream(out, it));
    if let Some(more) = link.streams.len().checked_sub(MOST_STREAMS).filter(|more| *more > 0) {
        let _ = writeln!(out, "      and {more} more: see ?format=json");
    }
}

fn stream(out: &mut String, stream: &StreamListing) {
    let _ = writeln!(
        out,
        "      stream {:<6} to {:<32} age {}  sent {}  received {}  held {}",
        stream.id,
        stream.destination,
        age(stream.age_seconds),
        bytes(stream.bytes_forth),
        bytes(stream.bytes_back),
        bytes(stream.bytes_held)
    );
}

fn age(seconds: u64) -> String {
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7199 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3600),
    }
}

/// In the unit that leaves at most four digits.
fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut count, mut unit) = (count, 0);
    while count >= 10_000 && unit + 1 < UNITS.len() {
        count /= 1024;
        unit += 1;
    }
    format!("{count} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;
    use links::AgentListing;

    #[test]
    fn the_table_is_good_to_read() {
        let stream = |id| StreamListing {
            id,
            destination: "kubernetes.default.svc:443".to_owned(),
            age_seconds: 90,
            bytes_forth: 812,
            bytes_back: 52_428_800,
            bytes_held: 65_536,
        };
        let link = LinkListing {
            id: 4,
            number: 0,
            peer: "203.0.113.9:40312".to_owned(),
            usable: true,
            age_seconds: 8_000,
            rtt_milliseconds: Some(23.42),
            silence_seconds: 0.3,
            stream_count: 53,
            streams: (10..63).map(stream).collect(),
        };
        let agent = AgentListing {
            agent: "5f3a".to_owned(),
            version: "0.1.0".to_owned(),
            credential: "system:tunnel-agent:east".to_owned(),
            links: vec![link],
        };
        let cluster = ClusterListing { cluster: "east".to_owned(), streams: 54, dials: 1, agents: vec![agent] };
        insta::assert_snapshot!(of(&[cluster]));
        assert_eq!(of(&[]), "no cluster is linked\n");
    }
}
