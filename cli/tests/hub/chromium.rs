//! Headless Chromium, driven over a pipe with the `DevTools` protocol
//! (<https://chromedevtools.github.io/devtools-protocol>), so that no port is opened for it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use base64::Engine as _;
use serde_json::{Value, json};

/// Time for one command, on a machine that does other things too.
const LIMIT: Duration = Duration::from_mins(2);
/// Interval at which a page checks a condition, in milliseconds.
const LOOK: u64 = 50;
/// The names that distributions give it.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// A running browser with one page. Ended on drop.
pub struct Chromium {
    child: Child,
    commands: ChildStdin,
    messages: mpsc::Receiver<Value>,
    session: String,
    last: u64,
    /// Errors and warnings of the page's console.
    complaints: Vec<String>,
}

/// A window.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    pub width: u32,
    pub height: u32,
    pub dark: bool,
}

/// The name of the installed browser. `None`: there is none.
pub fn find() -> Option<&'static str> {
    NAMES.into_iter().find(|name| {
        let asked = Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        asked.is_ok_and(|status| status.success())
    })
}

// === impl Chromium ===

impl Chromium {
    /// Starts `program`, which keeps its files in `home`.
    pub fn start(program: &str, home: &Path) -> Result<Self> {
        // It reads commands from descriptor 3 and writes answers to 4.
        let script = "exec \"$0\" \"$@\" 3<&0 4>&1 0</dev/null 1>/dev/null 2>/dev/null";
        let profile = format!("--user-data-dir={}", home.display());
        let mut child = Command::new("sh")
            .args(["-c", script, program, "--headless=new", "--remote-debugging-pipe", &profile])
            // In a container, /dev/shm is too small. The sandbox does not run as root.
            .args(["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars"])
            .args(["--disable-background-networking", "--disable-component-update", "--no-proxy-server", "about:blank"])
            .env("HOME", home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (commands, answers) = child.stdin.take().zip(child.stdout.take()).context("pipes")?;
        let (sender, messages) = mpsc::channel();
        std::thread::spawn(move || {
            for message in BufReader::new(answers).split(0).map_while(Result::ok) {
                if let Ok(message) = serde_json::from_slice(&message)
                    && sender.send(message).is_err()
                {
                    break;
                }
            }
        });
        let mut chromium = Self { child, commands, messages, session: String::new(), last: 0, complaints: Vec::new() };
        let target = chromium.call("Target.createTarget", &json!({"url": "about:blank"}))?;
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        chromium.session =
            chromium.call("Target.attachToTarget", &attach)?["sessionId"].as_str().context("a session")?.into();
        for domain in ["Page", "Runtime", "Log", "Accessibility"] {
            chromium.call(&format!("{domain}.enable"), &json!({}))?;
        }
        Ok(chromium)
    }

    /// Sends one command, and returns the answer.
    pub fn call(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method, "params": params});
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        self.commands.write_all(format!("{message}\0").as_bytes())?;
        loop {
            let mut message = self.messages.recv_timeout(LIMIT).with_context(|| format!("no answer to {method}"))?;
            if message["id"] == json!(self.last) {
                if !message["error"].is_null() {
                    bail!("{method}: {}", message["error"]);
                }
                return Ok(message["result"].take());
            }
            self.hear(&message);
        }
    }

    fn hear(&mut self, event: &Value) {
        let params = &event["params"];
        let is_bad = match event["method"].as_str().unwrap_or_default() {
            "Runtime.exceptionThrown" => true,
            "Runtime.consoleAPICalled" => matches!(params["type"].as_str(), Some("error" | "warning" | "assert")),
            "Log.entryAdded" => matches!(params["entry"]["level"].as_str(), Some("error" | "warning")),
            _ => false,
        };
        if is_bad {
            self.complaints.push(params.to_string());
        }
    }

    /// Opens `url`, and waits until its script has run and `expression` is true there.
    pub fn open(&mut self, url: &str, expression: &str) -> Result<()> {
        self.call("Page.navigate", &json!({"url": url}))?;
        self.until(&format!("document.documentElement.classList.contains('js') && {expression}"))
    }

    /// Waits until `expression` is true in the page.
    pub fn until(&mut self, expression: &str) -> Result<()> {
        let look = format!(
            "new Promise((done) => {{ const look = () => {{ let is = false; try {{ is = {expression}; }} catch {{}} \
             is ? done(true) : setTimeout(look, {LOOK}); }}; look(); }})"
        );
        loop {
            match self.evaluate(&look) {
                Ok(_) => return Ok(()),
                // The page before it is gone, and so is the one that looked.
                Err(error) if ["context", "navigated"].iter().any(|word| format!("{error:#}").contains(word)) => {}
                Err(error) => return Err(error.context(expression.to_owned())),
            }
        }
    }

    /// The value of `expression` in the page.
    pub fn evaluate(&mut self, expression: &str) -> Result<Value> {
        let params = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let mut result = self.call("Runtime.evaluate", &params)?;
        if !result["exceptionDetails"].is_null() {
            bail!("{expression}: {}", result["exceptionDetails"]);
        }
        Ok(result["result"]["value"].take())
    }

    /// Presses a key.
    pub fn press(&mut self, key: &str, code: u32) -> Result<()> {
        for kind in ["keyDown", "keyUp"] {
            let text = if key == "Enter" && kind == "keyDown" { "\r" } else { "" };
            let params = json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, "text": text});
            self.call("Input.dispatchKeyEvent", &params)?;
        }
        Ok(())
    }

    pub fn resize(&mut self, window: Window) -> Result<()> {
        let Window { width, height, dark } = window;
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", &metrics)?;
        let scheme = if dark { "dark" } else { "light" };
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"}]);
        self.call("Emulation.setEmulatedMedia", &json!({"features": features})).map(drop)
    }

    /// The window as it looks now: a PNG.
    pub fn picture(&mut self) -> Result<Vec<u8>> {
        let answer = self.call("Page.captureScreenshot", &json!({"format": "png"}))?;
        Ok(base64::engine::general_purpose::STANDARD.decode(answer["data"].as_str().context("a picture")?)?)
    }

    /// Role and name of everything that a screen reader reads out.
    pub fn told(&mut self) -> Result<Vec<(String, String)>> {
        let tree = self.call("Accessibility.getFullAXTree", &json!({}))?;
        let nodes = tree["nodes"].as_array().context("nodes")?.iter().filter(|node| node["ignored"] != true);
        let text = |value: &Value| value["value"].as_str().unwrap_or_default().to_owned();
        Ok(nodes.map(|node| (text(&node["role"]), text(&node["name"]))).collect())
    }

    /// Errors and warnings of the console so far.
    pub fn complaints(&mut self) -> Result<Vec<String>> {
        // This also reads the events that came before its answer.
        self.evaluate("1")?;
        Ok(std::mem::take(&mut self.complaints))
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
