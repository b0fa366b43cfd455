// @platformatic/kafka as a driver. Its stream of messages wants a group; the consumer's own fetch
// and listOffsets do not, and return the records that the stream is made of.
import {
  Admin, ConfigResourceTypes, Consumer, IncrementalAlterConfigOperationTypes, Producer
} from '@platformatic/kafka'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Groups } from './platformatic-groups.mjs'
import { decode, encode, serve, take } from './serve.mjs'

const MAX_BYTES = 1_048_576

class Client {
  constructor (bootstrap) {
    this.options = { clientId: 'driver', bootstrapBrokers: [bootstrap], retries: 3, metadataMaxAge: 100 }
    this.admin = new Admin(this.options)
    this.groups = new Groups(this.options, this.admin, asMessage)
  }

  async create ({ topic, partitions, config }) {
    const configs = Object.entries(config).map(([name, value]) => ({ name, value }))
    await this.admin.createTopics({ topics: [topic], partitions, replicas: 1, configs })
  }

  async describe ({ topic }) {
    const resources = [{ resourceType: ConfigResourceTypes.TOPIC, resourceName: topic }]
    const [{ configs }] = await this.admin.describeConfigs({ resources })
    return Object.fromEntries(configs.map(({ name, value }) => [name, value]))
  }

  async alter ({ topic, config }) {
    const configs = Object.entries(config).map(([name, value]) =>
      ({ name, value, configOperation: IncrementalAlterConfigOperationTypes.SET }))
    const resource = { resourceType: ConfigResourceTypes.TOPIC, resourceName: topic, configs }
    await this.admin.incrementalAlterConfigs({ resources: [resource] })
  }

  async partitions ({ topic }) {
    if (!(await this.admin.listTopics()).includes(topic)) return 0
    return (await this.admin.metadata({ topics: [topic], forceUpdate: true })).topics.get(topic).partitionsCount
  }

  async produce ({ topic, partition, codec, records }) {
    const producer = new Producer(this.options)
    try {
      const messages = records.map(record => asMessage(record, topic, partition))
      const { offsets } = await producer.send({ messages, compression: codec, acks: -1 })
      return records.map((_, index) => Number(offsets[0].offset) + index)
    } finally {
      await producer.close()
    }
  }

  async open ({ topic, partition, start, at }) {
    this.consumer = new Consumer({ ...this.options, groupId: 'unused-no-group-is-joined' })
    const metadata = await this.consumer.metadata({ topics: [topic] })
    const { id, partitions } = metadata.topics.get(topic)
    const times = { earliest: -2n, latest: -1n, timestamp: BigInt(at) }
    let offset = BigInt(at)
    if (start !== 'offset') {
      const asked = { topics: [topic], partitions: { [topic]: [partition] }, timestamp: times[start] }
      offset = (await this.consumer.listOffsets(asked)).get(topic)[partition]
    }
    this.place = { topicId: id, partition, offset, node: partitions[partition].leader }
  }

  async take ({ count, timeout_ms: timeoutMs }) {
    return take(count, timeoutMs, () => this.fetch())
  }

  async fetch () {
    const { topicId, partition, offset, node } = this.place
    const asked = {
      partition, fetchOffset: offset, currentLeaderEpoch: -1, lastFetchedEpoch: -1, partitionMaxBytes: MAX_BYTES
    }
    const { responses } = await this.consumer.fetch({
      node, minBytes: 1, maxBytes: MAX_BYTES, maxWaitTime: 100, topics: [{ topicId, partitions: [asked] }]
    })
    const batches = responses.flatMap(response => response.partitions[0].records ?? [])
    // A batch is sent whole: what lies before the wanted offset is dropped, as the stream does.
    const read = batches.flatMap(batch => batch.records.map(record => found(batch, record)))
      .filter(record => record.offset >= offset)
    if (read.length) this.place.offset = BigInt(read.at(-1).offset + 1)
    return read
  }

  async close () {
    await this.consumer.close(true)
  }

  async delete_records ({ topic, partition, before }) {
    const partitions = [{ partition, offset: BigInt(before) }]
    await this.admin.deleteRecords({ topics: [{ name: topic, partitions }] })
  }

  async add_partitions ({ topic, total }) {
    await this.admin.createPartitions({ topics: [{ name: topic, count: total }] })
  }

  async delete ({ topic }) {
    await this.admin.deleteTopics({ topics: [topic] })
  }
}

function asMessage (record, topic, partition) {
  return {
    topic,
    partition,
    key: decode(record.key) ?? undefined,
    value: decode(record.value) ?? undefined,
    timestamp: BigInt(record.timestamp),
    headers: new Map(record.headers.map(([name, value]) => [Buffer.from(name), decode(value)]))
  }
}

function found (batch, record) {
  return {
    offset: Number(batch.firstOffset) + record.offsetDelta,
    timestamp: Number(batch.firstTimestamp + record.timestampDelta),
    key: encode(record.key),
    value: encode(record.value),
    headers: record.headers.map(([name, value]) => [name.toString(), encode(value)])
  }
}

const manifest = new URL('../package.json', import.meta.resolve('@platformatic/kafka'))
const { version } = JSON.parse(readFileSync(fileURLToPath(manifest)))
// Of several aborted transactions of a producer in one fetch it leaves out the last only.
const lacks = ['commit metadata', 'repeated aborts']
await serve(new Client(process.argv[2]), version, lacks)
