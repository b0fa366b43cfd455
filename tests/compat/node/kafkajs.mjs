// kafkajs as a driver. Its consumer knows groups only; single partitions are read one level below,
// with the cluster and broker objects that the consumer itself is made of.
import { lz4Compress, lz4Decompress } from '@platformatic/wasm-utils'
import kafkajs from 'kafkajs'
import SnappyCodec from 'kafkajs-snappy'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import zlib from 'node:zlib'
import { Groups } from './kafkajs-groups.mjs'
import { decode, encode, serve, take } from './serve.mjs'

const { CompressionCodecs, CompressionTypes, ConfigResourceTypes, Kafka, logLevel } = kafkajs
const CODECS = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
  zstd: CompressionTypes.ZSTD
}

// kafkajs brings gzip alone and lets its users plug in the rest.
CompressionCodecs[CompressionTypes.Snappy] = SnappyCodec
CompressionCodecs[CompressionTypes.LZ4] = () => ({
  compress: async encoder => lz4Compress(encoder.buffer),
  decompress: async buffer => lz4Decompress(buffer)
})
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: async encoder => zlib.zstdCompressSync(encoder.buffer),
  decompress: async buffer => zlib.zstdDecompressSync(buffer)
})

class Client {
  constructor (bootstrap) {
    this.kafka = new Kafka({ brokers: [bootstrap], logLevel: logLevel.NOTHING, retry: { retries: 3 } })
    this.admin = this.kafka.admin()
    this.groups = new Groups(this.kafka, this.admin, asMessage, found)
  }

  async create ({ topic, partitions, config }) {
    const configEntries = Object.entries(config).map(([name, value]) => ({ name, value }))
    const created = { topic, numPartitions: partitions, replicationFactor: 1, configEntries }
    // It does not bear with a broker that has yet to learn of the topic; the runner waits instead.
    await this.admin.createTopics({ topics: [created], waitForLeaders: false })
  }

  async describe ({ topic }) {
    const asked = [{ type: ConfigResourceTypes.TOPIC, name: topic }]
    const { resources } = await this.admin.describeConfigs({ resources: asked, includeSynonyms: false })
    return Object.fromEntries(resources[0].configEntries.map(row => [row.configName, row.configValue]))
  }

  async alter ({ topic, config }) {
    const configEntries = Object.entries(config).map(([name, value]) => ({ name, value }))
    const resource = { type: ConfigResourceTypes.TOPIC, name: topic, configEntries }
    await this.admin.alterConfigs({ resources: [resource], validateOnly: false })
  }

  async partitions ({ topic }) {
    if (!(await this.admin.listTopics()).includes(topic)) return 0
    const { topics } = await this.admin.fetchTopicMetadata({ topics: [topic] })
    return topics[0].partitions.length
  }

  async produce ({ topic, partition, codec, records }) {
    const producer = this.kafka.producer({ idempotent: true })
    await producer.connect()
    try {
      const messages = records.map(record => asMessage(record, partition))
      const [{ baseOffset }] = await producer.send({ topic, compression: CODECS[codec], acks: -1, messages })
      return records.map((_, index) => Number(baseOffset) + index)
    } finally {
      await producer.disconnect()
    }
  }

  async open ({ topic, partition, start, at }) {
    const [createCluster] = Object.getOwnPropertySymbols(this.kafka)
      .filter(symbol => symbol.description.endsWith('createCluster'))
    this.cluster = this.kafka[createCluster]({ metadataMaxAge: 300_000 })
    await this.cluster.connect()
    await this.cluster.addTargetTopic(topic)
    const [nodeId] = Object.keys(this.cluster.findLeaderForPartitions(topic, [partition]))
    this.broker = await this.cluster.findBroker({ nodeId })
    this.place = { topic, partition, offset: await this.offset(topic, partition, start, at) }
  }

  async offset (topic, partition, start, at) {
    if (start === 'offset') return at
    const rows = start === 'timestamp'
      ? await this.admin.fetchTopicOffsetsByTimestamp(topic, at)
      : await this.admin.fetchTopicOffsets(topic)
    const row = rows.find(row => row.partition === partition)
    return Number({ earliest: row.low, latest: row.high, timestamp: row.offset }[start])
  }

  async take ({ count, timeout_ms: timeoutMs }) {
    return take(count, timeoutMs, () => this.fetch())
  }

  async fetch () {
    const { topic, partition, offset } = this.place
    const asked = { partition, fetchOffset: offset, maxBytes: 1_048_576 }
    const { responses } = await this.broker.fetch({
      isolationLevel: 0, maxWaitTime: 100, topics: [{ topic, partitions: [asked] }]
    })
    // A batch is sent whole: what lies before the wanted offset is dropped, as the consumer does.
    const messages = responses.flatMap(response => response.partitions[0].messages)
      .filter(message => Number(message.offset) >= offset)
    if (messages.length) this.place.offset = Number(messages.at(-1).offset) + 1
    return messages.map(found)
  }

  async close () {
    await this.cluster.disconnect()
  }

  async delete_records ({ topic, partition, before }) {
    await this.admin.fetchTopicOffsets(topic) // else it has no metadata, and finds no leader
    await this.admin.deleteTopicRecords({ topic, partitions: [{ partition, offset: String(before) }] })
  }

  async add_partitions ({ topic, total }) {
    await this.admin.createPartitions({ topicPartitions: [{ topic, count: total }] })
  }

  async delete ({ topic }) {
    await this.admin.deleteTopics({ topics: [topic] })
  }
}

function asMessage (record, partition) {
  return {
    partition,
    key: decode(record.key),
    value: decode(record.value),
    timestamp: String(record.timestamp),
    headers: asObject(record.headers)
  }
}

/** Headers are an object; a name that comes twice has a list. */
function asObject (headers) {
  const out = {}
  for (const [name, value] of headers) {
    out[name] = name in out ? [out[name], decode(value)].flat() : decode(value)
  }
  return out
}

function found (message) {
  const headers = Object.entries(message.headers ?? {})
    .flatMap(([name, values]) => [values].flat().map(value => [name, encode(value)]))
  return {
    offset: Number(message.offset),
    timestamp: Number(message.timestamp),
    key: encode(message.key),
    value: encode(message.value),
    headers
  }
}

const client = new Client(process.argv[2])
await client.admin.connect()
const manifest = createRequire(import.meta.url).resolve('kafkajs/package.json')
await serve(client, JSON.parse(readFileSync(manifest)).version, ['null headers', 'commit metadata'])
