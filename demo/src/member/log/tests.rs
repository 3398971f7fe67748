use super::*;
use crate::member::{
    model::Model,
    sample::{BERLIN, Container, Pod, Stage},
};

const CONTAINERS: &[Container] = &[Container { name: "main", image: "m" }, Container { name: "proxy", image: "p" }];

struct Bench {
    hub: Arc<Hub>,
    clock: Clock,
    created: OffsetDateTime,
}

impl Bench {
    /// A pod with two containers that have run for eight seconds.
    fn new() -> Self {
        let created = OffsetDateTime::UNIX_EPOCH;
        let bench = Self { hub: Arc::new(Hub::new(Model::new(1))), clock: Clock::starting_at(created), created };
        bench.set(Stage::Running);
        (0..10).for_each(|_| bench.clock.beat());
        bench
    }

    fn set(&self, stage: Stage) {
        let pod = Pod {
            uid: "u".into(),
            namespace: "shop",
            name: "web".into(),
            app: "web",
            containers: CONTAINERS,
            node: BERLIN.worker(0),
            node_address: "192.168.10.12".into(),
            address: BERLIN.pod_address(0),
            created: self.created,
            stage,
        };
        self.hub.update(|model| model.put(Kind::Pod, pod.body()));
    }

    fn key() -> Key {
        Key::new(Kind::Pod, "shop", "web")
    }

    fn open(&self, query: &str) -> Result<LogStream, Refusal> {
        let options = LogOptions::parse(&Query::parse(query))?;
        LogStream::open(Arc::clone(&self.hub), Self::key(), options, &self.clock, CancellationToken::new())
    }

    async fn read(&self, query: &str) -> String {
        let mut log = self.open(query).unwrap();
        let mut text = String::new();
        while let Some(piece) = log.next().await {
            text.push_str(std::str::from_utf8(&piece).unwrap());
        }
        text
    }
}

async fn piece(log: &mut LogStream) -> String {
    let piece = tokio::time::timeout(std::time::Duration::from_secs(5), log.next()).await.expect("a line is due");
    String::from_utf8(piece.expect("the log goes on").to_vec()).unwrap()
}

#[tokio::test]
async fn a_log_has_a_line_for_each_second_and_selects_its_end() {
    let bench = Bench::new();
    let all = bench.read("container=main").await;
    assert_eq!(all.lines().count(), 8);
    assert!(all.starts_with("level=info n=0 "));
    let tail = bench.read("container=main&tailLines=3").await;
    assert!(all.ends_with(&tail) && tail.lines().count() == 3);
    assert_eq!(bench.read("container=main&sinceSeconds=2").await.lines().count(), 2);
    assert_eq!(bench.read("container=main&tailLines=0").await, "");
    assert_eq!(bench.read("container=main&limitBytes=25").await, all[..25]);
    let stamped = bench.read("container=main&tailLines=1&timestamps=true").await;
    assert!(stamped.starts_with("1970-01-01T00:00:09Z level=info n=7"), "{stamped}");
}

#[tokio::test]
async fn a_followed_log_grows_with_the_clock_and_ends_with_the_pod() {
    let bench = Bench::new();
    let mut log = bench.open("container=main&follow=true&tailLines=1").unwrap();
    assert!(piece(&mut log).await.starts_with("level=info n=7 "));
    bench.clock.beat();
    assert!(piece(&mut log).await.starts_with("level=info n=8 "));
    bench.clock.beat();
    bench.clock.beat();
    assert_eq!(piece(&mut log).await.lines().count(), 2, "beats that were missed are made up for");
    bench.hub.update(|model| model.remove(&Bench::key()));
    bench.clock.beat();
    assert_eq!(log.next().await, None);
}

#[tokio::test]
async fn a_container_that_ends_takes_its_followers_with_it() {
    let bench = Bench::new();
    let mut log = bench.open("container=main&follow=true&tailLines=0").unwrap();
    bench.set(Stage::Finished(bench.clock.now() + Duration::SECOND));
    bench.clock.beat();
    assert!(piece(&mut log).await.starts_with("level=info n=8 "));
    assert_eq!(log.next().await, None);
}

#[tokio::test]
async fn a_crashed_container_shows_its_last_run() {
    let bench = Bench::new();
    bench.set(Stage::Crashing { restarts: 2, crashed: bench.clock.now() });
    let text = bench.read("container=main&follow=true").await;
    assert_eq!(text.lines().count(), 21);
    assert_eq!(bench.read("container=main&previous=true").await, text);
}

#[tokio::test]
async fn what_a_kubelet_refuses_is_refused() {
    let bench = Bench::new();
    let refusal = |query: &str| bench.open(query).unwrap_err();
    assert!(refusal("").to_string().contains("choose one of: [main proxy]"));
    assert_eq!(refusal("container=x"), Refusal::BadRequest("container x is not valid for pod web".into()));
    assert!(refusal("container=main&previous=true").to_string().starts_with("previous terminated container"));
    assert!(refusal("container=main&tailLines=many").to_string().contains("tailLines"));
    bench.set(Stage::Creating);
    assert!(refusal("container=main").to_string().ends_with("is waiting to start: ContainerCreating"));
    bench.hub.update(|model| model.remove(&Bench::key()));
    assert_eq!(refusal("container=main"), Refusal::NoSuchObject { kind: Kind::Pod, name: "web".into() });
}
