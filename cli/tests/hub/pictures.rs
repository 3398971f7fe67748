//! The page in a real browser: that it works there, and how it looks. Without a browser: that it is
//! the page in the pictures of `docs/cli.md`, which `SCREENSHOTS=docs/pictures` writes.

mod colours;
mod keyed;
mod linked;
mod shown;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use hub_tests::hub::MemberSecret;
use hub_tests::kubeconfig::Credential;
use hub_tests::kubectl::Running;
use hub_tests::member::GATEWAY_USER;
use hub_tests::ports;
use hub_tests::testbed::{Route, Testbed};
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::chromium::{self, Chromium, Window};
use crate::dashboard::{LIMIT, start};
use crate::fixture::{Fixture, clusters, ended, test};

/// Clusters in the pictures, with their aliases and labels. The same member is behind all of them.
const CITIES: [(&str, &str, &str); 12] = [
    ("amsterdam", "", "env=prod"),
    ("berlin", "Customers", "env=prod"),
    ("espoo", "", "env=prod"),
    ("kyoto", "", "env=staging"),
    ("lisbon", "Billing", "env=prod"),
    ("lyon", "", "env=test"),
    ("munich", "", "env=prod"),
    ("osaka", "", "env=staging"),
    ("porto", "", "env=test"),
    ("quito", "", "env=prod"),
    ("seoul", "Search", "env=prod"),
    ("turin", "", "env=test"),
];
/// The cluster where nothing answers.
const DEAD: &str = "quito";
/// The cluster behind the tunnel, without an agent.
const LOST: &str = "osaka";
/// Behind the tunnel, with agents.
const LINKED: &str = "seoul";
/// Whose credential ends soon.
const SOON: &str = "lyon";
/// The cluster that rejects the credential.
const REFUSED: &str = "munich";

const WIDE: Window = Window { width: 1280, height: 720, dark: false };

/// The first is ignored without a browser, the second with one. Both use the same clusters.
pub fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    let browser = chromium::find().is_some();
    let browsed = test(fixture, "pictures::the page works in a browser, and is the documentation's", browsed);
    let compared = test(fixture, "pictures::the page is the documentation's", compared);
    vec![browsed.with_ignored_flag(!browser), compared.with_ignored_flag(browser)]
}

fn compared(testbed: &Testbed) -> Result<()> {
    let _agent = linked::start(testbed)?;
    register(testbed)?;
    let (_running, address) = start(&clusters(testbed), "")?;
    shown::compare(testbed, &address, false)?;
    forget(testbed)
}

fn forget(testbed: &Testbed) -> Result<()> {
    linked::forget(testbed)?;
    CITIES.iter().try_for_each(|(city, ..)| testbed.hub.forget_member(city))
}

fn browsed(testbed: &Testbed) -> Result<()> {
    let program = chromium::find().context("no chromium")?;
    let _agent = linked::start(testbed)?;
    register(testbed)?;
    let (_running, address) = start(&clusters(testbed), "")?;
    let mut browser = Chromium::start(program, &testbed.directory("chromium")?)?;
    overview(&mut browser, &address.url(), testbed)?;
    one(&mut browser, &address.url(), testbed)?;
    let complaints = browser.complaints()?;
    ensure!(complaints.is_empty(), "the console complains: {}", complaints.join("\n"));
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(shown::PLACE);
    shown::compare(testbed, &address, written().is_some_and(|written| same(&written, &place)))?;
    // The console complains about programs that end, and rightly.
    orphaned(&mut browser, testbed)?;
    forget(testbed)
}

fn same(one: &Path, other: &Path) -> bool {
    one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}

/// Where to write pictures, if they are to be written.
fn written() -> Option<PathBuf> {
    let place = std::env::var_os("SCREENSHOTS")?;
    Some(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(place))
}

fn register(testbed: &Testbed) -> Result<()> {
    let dead = format!("https://127.0.0.1:{}", ports::free()?);
    let token = |hours| -> Result<MemberSecret> {
        let line = format!("create token {GATEWAY_USER} -n default --duration={hours}h");
        Ok(MemberSecret::with_token(&testbed.member.server, testbed.member.server.kubectl().ok(&line)?.trim()))
    };
    let (soon, late) = (token(240)?, token(2160)?);
    let documents = CITIES.iter().map(|(city, alias, label)| {
        let secret = match *city {
            DEAD => late.clone().at(&dead),
            LOST | LINKED => late.clone().behind_tunnel(),
            REFUSED => MemberSecret::with_token(&testbed.member.server, "no-such-token"),
            SOON => soon.clone(),
            _ => late.clone(),
        };
        let mut document = secret.document(city);
        let (key, value) = label.split_once('=').unwrap_or((label, ""));
        document["metadata"]["labels"][key] = json!(value);
        if !alias.is_empty() {
            document["metadata"]["annotations"]["cluster.core.oam.dev/cluster-alias"] = json!(alias);
        }
        document
    });
    testbed.hub.apply(&documents.collect::<Vec<_>>())
}

/// A condition in the page: the cluster has this status.
fn status(name: &str, status: &str) -> String {
    format!("document.querySelector('#c-{name} [data-f=status]').textContent === '{status}'")
}

fn expected(city: &str) -> &'static str {
    match city {
        DEAD => "Unreachable",
        REFUSED => "CredentialRefused",
        LOST => "TunnelDown",
        _ => "Ready",
    }
}

fn settled() -> String {
    CITIES.iter().map(|(city, ..)| status(city, expected(city))).collect::<Vec<_>>().join(" && ")
}

/// Uses `city`, and watches something there until it is dropped.
fn used(testbed: &Testbed, city: &str, name: &str) -> Result<Running> {
    let credential = Credential::Token(testbed.token.clone());
    let through = testbed.kubectl_as(Route::Hub, city, name, credential)?;
    let mut watching = through.args(["get", "--watch", "namespaces"]).start()?;
    watching.next_line(LIMIT)?;
    for resource in ["pods", "namespaces", "configmaps"] {
        ended(&clusters(testbed), &format!("get {resource} {city} -A"), 0)?;
    }
    Ok(watching)
}

fn overview(browser: &mut Chromium, url: &str, testbed: &Testbed) -> Result<()> {
    browser.resize(WIDE)?;
    browser.open(url, &settled())?;
    browser.until("document.getElementById('live').textContent === 'live'")?;
    heard(browser)?;
    // Only the clusters of this test: others come and go.
    filter(browser, "env=")?;
    picture(browser, "table", WIDE)?;
    picture(browser, "table-dark", Window { dark: true, ..WIDE })?;
    let narrow = Window { width: 390, height: 780, dark: false };
    picture(browser, "narrow", narrow)?;
    fits(browser)?;
    browser.resize(WIDE)?;
    sorted(browser)?;
    colours::readable(browser)?;
    keyed::walk(browser)?;
    // The page changes without a reload.
    browser.evaluate("window.kept = true")?;
    let member = MemberSecret::with_token(&testbed.member.server, &testbed.member_token);
    testbed.hub.register_member("utrecht", &member)?;
    browser.until(&status("utrecht", "Ready"))?;
    testbed.hub.forget_member("utrecht")?;
    browser.until("document.getElementById('c-utrecht') === null && window.kept")?;
    returned(browser)?;
    browser.open(&format!("{url}?view=tiles"), &settled())?;
    filter(browser, "env=")?;
    picture(browser, "tiles", WIDE)?;
    browser.evaluate(
        "{ const by = document.querySelector('#sort select'); by.value = 'status'; by.dispatchEvent(new Event('change')); }",
    )?;
    let first = browser.evaluate("[...document.querySelectorAll('.tiles li')].find((tile) => !tile.hidden).id")?;
    ensure!(first == format!("c-{REFUSED}"), "what fails comes first: {first}");
    colours::readable(browser)?;
    browser.resize(narrow)?;
    fits(browser)
}

fn one(browser: &mut Chromium, url: &str, testbed: &Testbed) -> Result<()> {
    for city in ["berlin", LINKED, LOST] {
        browser.resize(WIDE)?;
        browser.open(&format!("{url}clusters/{city}"), "document.querySelectorAll('.hops .took').length > 1")?;
        if city != "berlin" {
            browser.until("document.getElementById('facts').textContent.includes('Links')")?;
        }
        if city == LOST {
            browser.until("document.querySelector('#failures td time') && document.querySelector('.chart .all').getAttribute('d').includes('L')")?;
            picture(browser, "failing", Window { height: 860, ..WIDE })?;
            colours::readable(browser)?;
        } else {
            let _watching = used(testbed, city, "pictures")?;
            browser.until("document.querySelector('.chart .all').getAttribute('d').split('L').length > 20")?;
            heard(browser)?;
            let hops = browser.evaluate("document.querySelectorAll('.hops li.good').length")?;
            ensure!(hops == if city == LINKED { 7 } else { 5 }, "{city}: {hops} hops are good");
            picture(browser, if city == LINKED { "tunnelled" } else { "cluster" }, WIDE)?;
            colours::readable(browser)?;
            browser.resize(Window { width: 390, height: 780, dark: true })?;
            fits(browser)?;
        }
    }
    Ok(())
}

/// Checks landmarks, headings and names that a screen reader needs.
fn heard(browser: &mut Chromium) -> Result<()> {
    let told = browser.told()?;
    let count = |role: &str| told.iter().filter(|(found, _)| found == role).count();
    for role in ["banner", "main", "heading", "navigation", "table", "columnheader", "rowheader", "status"] {
        ensure!(count(role) > 0, "nothing is a {role}: {told:?}");
    }
    for (role, name) in &told {
        let needs_name = matches!(role.as_str(), "button" | "link" | "searchbox" | "navigation" | "table" | "img");
        ensure!(!needs_name || !name.is_empty(), "a {role} without a name: {told:?}");
    }
    Ok(())
}

fn filter(browser: &mut Chromium, words: &str) -> Result<()> {
    let words = Value::from(words);
    browser.evaluate(&format!(
        "{{ const filter = document.getElementById('filter'); filter.value = {words}; filter.dispatchEvent(new Event('input')); }}"
    ))?;
    let shown = browser
        .evaluate("[...document.querySelectorAll('#clusters [data-state]')].filter((row) => !row.hidden).length")?;
    ensure!(shown == CITIES.len(), "{shown} of {words} are shown");
    Ok(())
}

/// A page that comes back after a long time shows no cluster that is gone, whatever its name was.
fn returned(browser: &mut Chromium) -> Result<()> {
    browser.evaluate(
        "{ const row = document.getElementById('c-turin').cloneNode(true); row.id = 'c-constructor'; \
         document.querySelector('#clusters tbody').append(row); document.body.dataset.events = 'events?v=999999'; \
         document.dispatchEvent(new Event('visibilitychange')); }",
    )?;
    browser
        .until("document.getElementById('c-constructor') === null && document.getElementById('c-turin') !== null")?;
    browser.until("document.getElementById('live').textContent === 'live'")
}

/// The program has ended, and another user of the machine listens in its place.
fn orphaned(browser: &mut Chromium, testbed: &Testbed) -> Result<()> {
    let live = "document.getElementById('live').textContent";
    // The person looks at the page while that happens, or comes back to it afterwards.
    for is_hidden in [false, true] {
        let (running, address) = start(&clusters(testbed), "")?;
        browser.open(&address.url(), &format!("{live} === 'live'"))?;
        if is_hidden {
            browser.evaluate(&turned(true))?;
        }
        drop(running);
        let impostor = TcpListener::bind(("127.0.0.1", address.port()))?;
        // One thread for each connection: a browser also connects without a request, to be fast
        // later.
        let answer = |asked: TcpStream| drop(std::thread::spawn(move || deceive(asked)));
        std::thread::spawn(move || impostor.incoming().for_each(|asked| drop(asked.map(answer))));
        browser.evaluate(&turned(false))?;
        browser.until(&format!("{live}.startsWith('ended: run ')"))?;
        let shown = browser.evaluate("document.querySelector('#notices b') !== null")?;
        ensure!(shown == false, "markup of another program is in the page");
        browser.evaluate("window.EventSource = class { constructor() { window.asked = true; } }")?;
        browser.evaluate(&turned(true))?;
        browser.evaluate(&turned(false))?;
        ensure!(browser.evaluate("window.asked === true")? == false, "it asks there again");
    }
    Ok(())
}

/// A script that hides the page, or shows it again.
fn turned(is_hidden: bool) -> String {
    format!(
        "Object.defineProperty(document, 'hidden', {{ configurable: true, get: () => {is_hidden} }}); \
         document.dispatchEvent(new Event('visibilitychange'))"
    )
}

/// Answers any request with a stream of markup.
fn deceive(mut stream: TcpStream) -> std::io::Result<()> {
    let mut asked = [0; 4096];
    let read = stream.read(&mut asked)?;
    let event = json!({"seal": "?", "parts": {"notices": "<b>Log in again</b>"}});
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    stream.write_all(format!("{head}data: {event}\n\n").as_bytes())?;
    // Waits until the page leaves.
    if read > 0 { stream.read(&mut asked).map(drop) } else { Ok(()) }
}

fn sorted(browser: &mut Chromium) -> Result<()> {
    let names = "[...document.querySelectorAll('#clusters tbody tr')].filter((row) => !row.hidden).map((row) => row.id.slice(2))";
    browser.evaluate("document.querySelector('[data-sort=status]').click()")?;
    let by_status = browser.evaluate(names)?;
    ensure!(
        by_status[0] == REFUSED && by_status[1] == LOST && by_status[2] == DEAD && by_status[3] == SOON,
        "what fails comes first: {by_status}"
    );
    let told = browser.evaluate("document.querySelector('th.status').getAttribute('aria-sort')")?;
    ensure!(told == "ascending", "{told}");
    browser.evaluate(
        "document.querySelector('[data-sort=name]').click(); document.querySelector('[data-sort=name]').click()",
    )?;
    let by_name = browser.evaluate(names)?;
    ensure!(by_name[0] == "turin", "backwards: {by_name}");
    browser.evaluate("document.querySelector('[data-show=bad]').click()")?;
    let failing = browser.evaluate(names)?;
    ensure!(failing.as_array().map(Vec::len) == Some(3), "those that fail: {failing}");
    browser.evaluate("document.querySelector('[data-show=bad]').click()").map(drop)
}

/// Checks that nothing is wider than the window.
fn fits(browser: &mut Chromium) -> Result<()> {
    let widths = browser.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")?;
    ensure!(widths[0].as_u64() <= widths[1].as_u64(), "wider than the window: {widths}");
    Ok(())
}

fn picture(browser: &mut Chromium, name: &str, window: Window) -> Result<()> {
    browser.resize(window)?;
    let picture = browser.picture()?;
    ensure!(picture.starts_with(b"\x89PNG") && picture.len() > 10_000, "{name} shows nothing");
    if let Some(place) = written() {
        std::fs::create_dir_all(&place)?;
        std::fs::write(place.join(format!("dashboard-{name}.png")), picture).context("cannot write the picture")?;
    }
    Ok(())
}
