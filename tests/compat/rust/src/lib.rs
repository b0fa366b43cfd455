//! The loop of a driver in Rust: a line of JSON in, a call, a line of JSON out; see driver.py.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::error::Error;
use std::io::{BufRead, Write, stdin, stdout};

/// What a call asks for; each call has some of the fields.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Request {
    #[serde(rename = "do")]
    pub call: String,
    pub topic: String,
    pub partition: i32,
    pub partitions: i32,
    pub config: BTreeMap<String, String>,
    pub codec: String,
    pub records: Vec<Line>,
    pub start: String,
    pub at: i64,
    pub count: usize,
    pub timeout_ms: u64,
    pub before: i64,
    pub total: usize,
    pub member: String,
    pub group: String,
    pub protocol: String,
    pub offset: i64,
    pub metadata: String,
    pub transactional_id: String,
    pub commit: bool,
    pub target: String,
}

/// A record; bytes are in base64.
#[derive(Deserialize, Serialize)]
pub struct Line {
    #[serde(default)]
    pub offset: i64,
    pub key: Option<String>,
    pub value: Option<String>,
    pub timestamp: i64,
    pub headers: Vec<(String, Option<String>)>,
}

pub enum Failure {
    Unsupported(&'static str),
    Failed(String),
}

impl<E: Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Failure::Failed(error.to_string())
    }
}

pub type Answer = Result<Value, Failure>;

pub fn encode(value: Option<&[u8]>) -> Option<String> {
    value.map(|bytes| STANDARD.encode(bytes))
}

pub fn decode(text: &Option<String>) -> Result<Option<Vec<u8>>, Failure> {
    Ok(text
        .as_ref()
        .map(|text| STANDARD.decode(text))
        .transpose()?)
}

/// Until standard input ends; a failure is an answer, and the loop goes on.
pub fn serve(version: &str, lacks: &[&str], mut answer: impl FnMut(Request) -> Answer) {
    say(json!({"version": version, "lacks": lacks}));
    for line in stdin().lock().lines() {
        let request = serde_json::from_str(&line.expect("a line")).expect("a request in JSON");
        say(match answer(request) {
            Ok(result) => json!({"ok": result}),
            Err(Failure::Unsupported(why)) => json!({"unsupported": why}),
            Err(Failure::Failed(why)) => json!({"error": why}),
        });
    }
}

fn say(answer: Value) {
    let mut output = stdout().lock();
    writeln!(output, "{answer}").expect("standard output");
    output.flush().expect("standard output");
}
