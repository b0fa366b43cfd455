//! rskafka as a driver. It speaks the protocol itself and has no groups: partitions are read.

use chrono::DateTime;
use rskafka::client::partition::{Compression, OffsetAt, PartitionClient, UnknownTopicHandling};
use rskafka::client::{Client, ClientBuilder};
use rskafka::record::{Record, RecordAndOffset};
use runnel_compat::{Answer, Failure, Line, Request, decode, encode, serve};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tokio::{runtime::Runtime, time::timeout};

const PATIENCE: Duration = Duration::from_secs(20);
const PATIENCE_MS: i32 = 20_000;
const FETCH_BYTES: i32 = 1_100_000;
const NO_CONFIGS: Failure = Failure::Unsupported("it has no call for configurations");
const NO_GROUPS: Failure = Failure::Unsupported("it knows no groups");
const NO_TRANSACTIONS: Failure = Failure::Unsupported("it knows no transactions");
const NO_PARTITIONS: Failure = Failure::Unsupported("it has no call for new partitions");

struct Reader {
    client: PartitionClient,
    offset: i64,
}

struct Driver {
    client: Client,
    reader: Option<Reader>,
}

fn main() {
    let runtime = Runtime::new().expect("a runtime");
    let bootstrap = std::env::args().nth(1).expect("HOST:PORT");
    let client = runtime
        .block_on(ClientBuilder::new(vec![bootstrap]).build())
        .expect("a client");
    let mut driver = Driver {
        client,
        reader: None,
    };
    serve("0.6.0", &["null headers", "repeated headers"], |request| {
        // It retries without end, so a broker that never answers must be given up here.
        runtime.block_on(async { timeout(PATIENCE, driver.answer(request)).await })?
    });
}

impl Driver {
    async fn answer(&mut self, request: Request) -> Answer {
        let topic = request.topic.as_str();
        match request.call.as_str() {
            "create" if !request.config.is_empty() => return Err(NO_CONFIGS),
            "create" => {
                let controller = self.client.controller_client()?;
                controller
                    .create_topic(topic, request.partitions, 1, PATIENCE_MS)
                    .await?
            }
            "describe" | "alter" => return Err(NO_CONFIGS),
            "partitions" => {
                let topics = self.client.list_topics().await?;
                let found = topics.iter().find(|found| found.name == topic);
                return Ok(json!(found.map_or(0, |found| found.partitions.len())));
            }
            "produce" => return self.produce(request).await,
            "open" => self.open(request).await?,
            "take" => return self.take(request.count, request.timeout_ms).await,
            "close" => self.reader = None,
            "delete_records" => {
                let client = self.partition(topic, request.partition).await?;
                client.delete_records(request.before, PATIENCE_MS).await?
            }
            "add_partitions" => return Err(NO_PARTITIONS),
            "delete" => {
                self.client
                    .controller_client()?
                    .delete_topic(topic, PATIENCE_MS)
                    .await?
            }
            "transaction" | "copy" => return Err(NO_TRANSACTIONS),
            _ => return Err(NO_GROUPS),
        }
        Ok(Value::Null)
    }

    async fn partition(&self, topic: &str, partition: i32) -> Result<PartitionClient, Failure> {
        Ok(self
            .client
            .partition_client(topic, partition, UnknownTopicHandling::Error)
            .await?)
    }

    async fn produce(&self, request: Request) -> Answer {
        let codec = match request.codec.as_str() {
            "gzip" => Compression::Gzip,
            "snappy" => Compression::Snappy,
            "lz4" => Compression::Lz4,
            "zstd" => Compression::Zstd,
            _ => Compression::NoCompression,
        };
        let records = request
            .records
            .iter()
            .map(record)
            .collect::<Result<Vec<_>, _>>()?;
        let client = self.partition(&request.topic, request.partition).await?;
        Ok(json!(client.produce(records, codec).await?))
    }

    async fn open(&mut self, request: Request) -> Result<(), Failure> {
        let client = self.partition(&request.topic, request.partition).await?;
        let offset = match request.start.as_str() {
            "earliest" => client.get_offset(OffsetAt::Earliest).await?,
            "latest" => client.get_offset(OffsetAt::Latest).await?,
            "timestamp" => {
                let at = DateTime::from_timestamp_millis(request.at).expect("a time");
                client.get_offset(OffsetAt::Timestamp(at)).await?
            }
            _ => request.at,
        };
        self.reader = Some(Reader { client, offset });
        Ok(())
    }

    async fn take(&mut self, count: usize, timeout_ms: u64) -> Answer {
        let reader = self.reader.as_mut().expect("an open reader");
        let deadline = Instant::now() + Duration::from_millis(timeout_ms);
        let mut read = Vec::new();
        while read.len() < count && Instant::now() < deadline {
            let (found, _) = reader
                .client
                .fetch_records(reader.offset, 1..FETCH_BYTES, 100)
                .await?;
            if let Some(last) = found.last() {
                reader.offset = last.offset + 1;
            }
            read.extend(found.iter().map(line));
        }
        Ok(json!(read))
    }
}

fn record(line: &Line) -> Result<Record, Failure> {
    let mut headers = std::collections::BTreeMap::new();
    for (name, value) in &line.headers {
        headers.insert(name.clone(), decode(value)?.unwrap_or_default());
    }
    Ok(Record {
        key: decode(&line.key)?,
        value: decode(&line.value)?,
        headers,
        timestamp: DateTime::from_timestamp_millis(line.timestamp).expect("a time"),
    })
}

fn line(found: &RecordAndOffset) -> Line {
    let record = &found.record;
    let headers = record.headers.iter();
    Line {
        offset: found.offset,
        key: encode(record.key.as_deref()),
        value: encode(record.value.as_deref()),
        timestamp: record.timestamp.timestamp_millis(),
        headers: headers
            .map(|(name, value)| (name.clone(), encode(Some(value))))
            .collect(),
    }
}
