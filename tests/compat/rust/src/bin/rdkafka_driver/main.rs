//! rdkafka as a driver: librdkafka, its partitions assigned without a group.

mod groups;

use groups::Groups;
use rdkafka::admin::{AdminClient, AdminOptions, AlterConfig, NewPartitions, NewTopic};
use rdkafka::admin::{ResourceSpecifier, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{BorrowedMessage, Header, Headers, OwnedHeaders};
use rdkafka::producer::{FutureProducer, FutureRecord, Producer};
use rdkafka::{ClientConfig, Message, Offset, TopicPartitionList};
use runnel_compat::{Answer, Failure, Line, Request, decode, encode, serve};
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

const PATIENCE: Duration = Duration::from_secs(20);

struct Driver {
    bootstrap: String,
    admin: AdminClient<DefaultClientContext>,
    reader: Option<BaseConsumer>,
    groups: Groups,
}

fn main() {
    let runtime = Runtime::new().expect("a runtime");
    let bootstrap = std::env::args().nth(1).expect("HOST:PORT");
    let admin = config(&bootstrap).create().expect("an admin client");
    let mut driver = Driver {
        groups: Groups::new(&bootstrap),
        bootstrap,
        admin,
        reader: None,
    };
    let version = format!(
        "0.39.0 on librdkafka {}",
        rdkafka::util::get_rdkafka_version().1
    );
    serve(&version, &[], |request| {
        runtime.block_on(driver.answer(request))
    });
}

fn config(bootstrap: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", bootstrap)
        .set("log_level", "0");
    config
}

impl Driver {
    async fn answer(&mut self, request: Request) -> Answer {
        let topic = request.topic.as_str();
        let options = AdminOptions::new().operation_timeout(Some(PATIENCE));
        match request.call.as_str() {
            "create" => {
                let replication = TopicReplication::Fixed(1);
                let mut new = NewTopic::new(topic, request.partitions, replication);
                for (name, value) in &request.config {
                    new = new.set(name, value);
                }
                succeeded(self.admin.create_topics(&[new], &options).await?)?
            }
            "describe" => return self.describe(topic, &options).await,
            "alter" => {
                let mut change = AlterConfig::new(ResourceSpecifier::Topic(topic));
                for (name, value) in &request.config {
                    change = change.set(name, value);
                }
                for altered in self.admin.alter_configs(&[change], &options).await? {
                    altered.map_err(|(_, code)| code)?;
                }
            }
            "partitions" => {
                let metadata = self.admin.inner().fetch_metadata(None, PATIENCE)?;
                let found = metadata.topics().iter().find(|found| found.name() == topic);
                return Ok(json!(found.map_or(0, |found| found.partitions().len())));
            }
            "produce" => return self.produce(request).await,
            "open" => self.open(request)?,
            "take" => return self.take(request.count, request.timeout_ms),
            "close" => self.reader = None,
            "delete_records" => {
                let before = place(topic, request.partition, Offset::Offset(request.before))?;
                for deleted in self
                    .admin
                    .delete_records(&before, &options)
                    .await?
                    .elements()
                {
                    deleted.error()?;
                }
            }
            "add_partitions" => {
                let more = NewPartitions::new(topic, request.total);
                succeeded(self.admin.create_partitions(&[more], &options).await?)?
            }
            "delete" => succeeded(self.admin.delete_topics(&[topic], &options).await?)?,
            _ => return self.groups.answer(request, &self.admin).await,
        }
        Ok(Value::Null)
    }

    async fn describe(&self, topic: &str, options: &AdminOptions) -> Answer {
        let asked = [ResourceSpecifier::Topic(topic)];
        let mut found = Map::new();
        for resource in self.admin.describe_configs(&asked, options).await? {
            for entry in resource?.entries {
                found.insert(entry.name, json!(entry.value));
            }
        }
        Ok(Value::Object(found))
    }

    async fn produce(&self, request: Request) -> Answer {
        let producer: FutureProducer = config(&self.bootstrap)
            .set("compression.type", &request.codec)
            .set("message.max.bytes", "2000000")
            .set("message.timeout.ms", "20000")
            .create()?;
        let mut waiting = Vec::new();
        for line in &request.records {
            let (key, value) = (decode(&line.key)?, decode(&line.value)?);
            let mut headers = OwnedHeaders::new();
            for (name, content) in &line.headers {
                let content = decode(content)?;
                headers = headers.insert(Header {
                    key: name,
                    value: content.as_ref(),
                });
            }
            let mut record: FutureRecord<Vec<u8>, Vec<u8>> = FutureRecord::to(&request.topic)
                .partition(request.partition)
                .timestamp(line.timestamp)
                .headers(headers);
            record.key = key.as_ref();
            record.payload = value.as_ref();
            waiting.push(producer.send_result(record).map_err(|(error, _)| error)?);
        }
        let mut offsets = Vec::new();
        for delivery in waiting {
            offsets.push(delivery.await?.map_err(|(error, _)| error)?.offset);
        }
        producer.flush(PATIENCE)?;
        Ok(json!(offsets))
    }

    fn open(&mut self, request: Request) -> Result<(), Failure> {
        let consumer: BaseConsumer = config(&self.bootstrap)
            .set(
                "group.id",
                "unused: librdkafka wants a name even where no group is joined",
            )
            .set("enable.auto.commit", "false")
            .set("auto.offset.reset", "error")
            .create()?;
        let (topic, partition) = (request.topic.as_str(), request.partition);
        let at = Offset::Offset(request.at);
        let start = match request.start.as_str() {
            "earliest" => Offset::Beginning,
            "latest" => Offset::End,
            "timestamp" => {
                let asked = place(topic, partition, at)?;
                consumer.offsets_for_times(asked, PATIENCE)?.elements()[0].offset()
            }
            _ => at,
        };
        consumer.assign(&place(topic, partition, start)?)?;
        self.reader = Some(consumer);
        Ok(())
    }

    fn take(&self, count: usize, timeout_ms: u64) -> Answer {
        let reader = self.reader.as_ref().expect("an open reader");
        let deadline = Instant::now() + Duration::from_millis(timeout_ms);
        let mut read = Vec::new();
        while read.len() < count && Instant::now() < deadline {
            if let Some(message) = reader.poll(Duration::from_millis(100)) {
                read.push(line(&message?));
            }
        }
        Ok(json!(read))
    }
}

fn place(topic: &str, partition: i32, offset: Offset) -> Result<TopicPartitionList, Failure> {
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(topic, partition, offset)?;
    Ok(list)
}

fn succeeded(results: Vec<rdkafka::admin::TopicResult>) -> Result<(), Failure> {
    for result in results {
        result.map_err(|(_, code)| code)?;
    }
    Ok(())
}

fn line(message: &BorrowedMessage<'_>) -> Line {
    let headers = message
        .headers()
        .into_iter()
        .flat_map(|headers| headers.iter());
    Line {
        offset: message.offset(),
        key: encode(message.key()),
        value: encode(message.payload()),
        timestamp: message.timestamp().to_millis().unwrap_or(-1),
        headers: headers
            .map(|header| (header.key.to_string(), encode(header.value)))
            .collect(),
    }
}
