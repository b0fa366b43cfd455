//! Members of groups, transactions, and the administration of both; see group_calls.py.

use crate::{PATIENCE, config, line, place};
use rdkafka::admin::{AdminClient, AdminOptions};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::{Message, Offset, TopicPartitionList};
use runnel_compat::{Answer, Failure, Request, decode};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::{Duration, Instant};

const COPIED: &[u8] = b"copy of ";

pub struct Groups {
    bootstrap: String,
    members: HashMap<String, BaseConsumer>,
}

impl Groups {
    pub fn new(bootstrap: &str) -> Self {
        Groups {
            bootstrap: bootstrap.to_string(),
            members: HashMap::new(),
        }
    }

    pub async fn answer(
        &mut self,
        request: Request,
        admin: &AdminClient<DefaultClientContext>,
    ) -> Answer {
        let (group, topic) = (request.group.as_str(), request.topic.as_str());
        match request.call.as_str() {
            "join" => {
                let consumer = self.joined(group, topic, &request.protocol)?;
                self.members.insert(request.member, consumer);
            }
            "poll" => return poll(&self.members[&request.member], request.timeout_ms),
            "assigned" => {
                let owned = self.members[&request.member].assignment()?;
                let rows = owned.elements();
                let partitions: Vec<i32> = rows.iter().map(|row| row.partition()).collect();
                return Ok(json!(partitions));
            }
            "commit" => self.members[&request.member].commit_consumer_state(CommitMode::Sync)?,
            "leave" => drop(self.members.remove(&request.member)),
            "commit_offset" => {
                let mut list = TopicPartitionList::new();
                list.add_partition_offset(
                    topic,
                    request.partition,
                    Offset::Offset(request.offset),
                )?;
                if let Some(mut row) = list.find_partition(topic, request.partition) {
                    row.set_metadata(&request.metadata);
                }
                self.consumer(group)?.commit(&list, CommitMode::Sync)?
            }
            "committed" => return self.committed(&request),
            "list_groups" => {
                let listed = self.consumer(group)?.fetch_group_list(None, PATIENCE)?;
                let names: Vec<&str> = listed.groups().iter().map(|row| row.name()).collect();
                return Ok(json!(names));
            }
            "describe_group" => {
                let listed = self
                    .consumer(group)?
                    .fetch_group_list(Some(group), PATIENCE)?;
                let found = &listed.groups()[0];
                let state = found.state().to_lowercase();
                return Ok(json!({"state": state, "members": found.members().len()}));
            }
            "delete_group" => {
                let options = AdminOptions::new().operation_timeout(Some(PATIENCE));
                for deleted in admin.delete_groups(&[group], &options).await? {
                    deleted.map_err(|(_, code)| code)?;
                }
            }
            "transaction" => self.transaction(&request)?,
            "copy" => self.copy(&request)?,
            other => return Err(Failure::Failed(format!("unknown: {other}"))),
        }
        Ok(Value::Null)
    }

    fn consumer(&self, group: &str) -> Result<BaseConsumer, Failure> {
        let group = if group.is_empty() { "unused" } else { group };
        Ok(config(&self.bootstrap).set("group.id", group).create()?)
    }

    fn joined(&self, group: &str, topic: &str, protocol: &str) -> Result<BaseConsumer, Failure> {
        let consumer: BaseConsumer = config(&self.bootstrap)
            .set("group.id", group)
            .set("group.protocol", protocol)
            .set("enable.auto.commit", "false")
            .set("auto.offset.reset", "earliest")
            .set("isolation.level", "read_committed")
            .create()?;
        consumer.subscribe(&[topic])?;
        Ok(consumer)
    }

    fn committed(&self, request: &Request) -> Answer {
        let asked = place(&request.topic, request.partition, Offset::Invalid)?;
        let found = self
            .consumer(&request.group)?
            .committed_offsets(asked, PATIENCE)?;
        let row = &found.elements()[0];
        Ok(match row.offset() {
            Offset::Offset(offset) => json!({"offset": offset, "metadata": row.metadata()}),
            _ => Value::Null,
        })
    }

    fn transactional(&self, request: &Request) -> Result<BaseProducer, Failure> {
        let producer: BaseProducer = config(&self.bootstrap)
            .set("transactional.id", &request.transactional_id)
            .create()?;
        producer.init_transactions(PATIENCE)?;
        producer.begin_transaction()?;
        Ok(producer)
    }

    fn transaction(&self, request: &Request) -> Result<(), Failure> {
        let producer = self.transactional(request)?;
        for (index, line) in request.records.iter().enumerate() {
            let (key, value) = (decode(&line.key)?, decode(&line.value)?);
            let mut headers = OwnedHeaders::new();
            for (name, content) in &line.headers {
                let content = decode(content)?;
                headers = headers.insert(Header {
                    key: name,
                    value: content.as_ref(),
                });
            }
            let mut record: BaseRecord<Vec<u8>, Vec<u8>> = BaseRecord::to(&request.topic)
                .partition((index % 2) as i32)
                .timestamp(line.timestamp)
                .headers(headers);
            record.key = key.as_ref();
            record.payload = value.as_ref();
            producer.send(record).map_err(|(error, _)| error)?;
        }
        end(&producer, request.commit)
    }

    fn copy(&self, request: &Request) -> Result<(), Failure> {
        let consumer = self.joined(&request.group, &request.topic, "classic")?;
        let producer = self.transactional(request)?;
        let mut next = TopicPartitionList::new();
        let deadline = Instant::now() + 2 * PATIENCE;
        let mut left = request.count;
        while left > 0 {
            if Instant::now() > deadline {
                return Err(Failure::Failed(format!("{left} records not read")));
            }
            let Some(message) = consumer.poll(Duration::from_millis(100)) else {
                continue;
            };
            let message = message?;
            let value = [COPIED, message.payload().unwrap_or_default()].concat();
            let mut record: BaseRecord<[u8], Vec<u8>> = BaseRecord::to(&request.target)
                .partition(message.partition())
                .timestamp(message.timestamp().to_millis().unwrap_or(-1));
            record.key = message.key();
            record.payload = Some(&value);
            if let Some(headers) = message.headers() {
                record.headers = Some(headers.detach());
            }
            producer.send(record).map_err(|(error, _)| error)?;
            let after = Offset::Offset(message.offset() + 1);
            match next.find_partition(&request.topic, message.partition()) {
                Some(mut row) => row.set_offset(after)?,
                None => next.add_partition_offset(&request.topic, message.partition(), after)?,
            }
            left -= 1;
        }
        let metadata = consumer.group_metadata().expect("a member of the group");
        producer.send_offsets_to_transaction(&next, &metadata, PATIENCE)?;
        end(&producer, request.commit)
    }
}

fn end(producer: &BaseProducer, commit: bool) -> Result<(), Failure> {
    producer.flush(PATIENCE)?; // so that the log has what is aborted
    Ok(if commit {
        producer.commit_transaction(PATIENCE)?
    } else {
        producer.abort_transaction(PATIENCE)?
    })
}

/// What there is within the time, and what follows at once.
fn poll(consumer: &BaseConsumer, timeout_ms: u64) -> Answer {
    let mut read = Vec::new();
    let mut wait = Duration::from_millis(timeout_ms);
    while let Some(message) = consumer.poll(wait) {
        let message = message?;
        let mut row = json!(line(&message));
        row["partition"] = json!(message.partition());
        read.push(row);
        wait = Duration::from_millis(5);
    }
    Ok(json!(read))
}
