// @confluentinc/kafka-javascript as a driver: its lower API, that of node-rdkafka, which can assign
// partitions without a group.
import kafka from '@confluentinc/kafka-javascript'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { promisify } from 'node:util'
import { Groups } from './confluent-groups.mjs'
import { decode, encode, serve, take, Unsupported } from './serve.mjs'

const PATIENCE_MS = 20_000
const OFFSET_BEGINNING = -2
const OFFSET_END = -1
const NO_CONFIGS = 'its admin client has no call for configurations'

class Client {
  constructor (bootstrap) {
    this.settings = { 'bootstrap.servers': bootstrap, log_level: 0 }
    this.admin = kafka.AdminClient.create(this.settings)
    this.groups = new Groups(this.settings, this.admin, found)
  }

  async create ({ topic, partitions, config }) {
    const created = { topic, num_partitions: partitions, replication_factor: 1, config }
    await this.call('createTopic', created, PATIENCE_MS)
  }

  async describe () {
    throw new Unsupported(NO_CONFIGS)
  }

  async alter () {
    throw new Unsupported(NO_CONFIGS)
  }

  async partitions ({ topic }) {
    if (!(await this.call('listTopics', { timeout: PATIENCE_MS })).includes(topic)) return 0
    const [described] = await this.call('describeTopics', [topic], { timeout: PATIENCE_MS })
    return described.partitions.length
  }

  async produce ({ topic, partition, codec, records }) {
    const producer = new kafka.Producer({
      ...this.settings,
      'compression.codec': codec,
      'message.max.bytes': 2_000_000,
      'message.timeout.ms': PATIENCE_MS,
      dr_cb: true
    })
    await connected(producer)
    producer.setPollInterval(10)
    try {
      return await new Promise((resolve, reject) => {
        const offsets = []
        let left = records.length
        producer.on('delivery-report', (error, report) => {
          if (error) reject(error)
          offsets[report.opaque] = report.offset
          if (--left === 0) resolve(offsets)
        })
        records.forEach((record, index) => {
          const headers = record.headers.map(([name, value]) => ({ [name]: decode(value) }))
          const { key, value, timestamp } = record
          producer.produce(topic, partition, decode(value), decode(key), timestamp, index, headers)
        })
      })
    } finally {
      await promisify(producer.disconnect.bind(producer))()
    }
  }

  async open ({ topic, partition, start, at }) {
    this.consumer = new kafka.KafkaConsumer({
      ...this.settings,
      'group.id': 'unused: librdkafka wants a name even where no group is joined',
      'enable.auto.commit': false
    }, { 'auto.offset.reset': 'error' })
    await connected(this.consumer)
    this.consumer.setDefaultConsumeTimeout(100)
    let offset = { earliest: OFFSET_BEGINNING, latest: OFFSET_END, offset: at }[start]
    if (start === 'timestamp') {
      const lookUp = promisify(this.consumer.offsetsForTimes.bind(this.consumer))
      offset = (await lookUp([{ topic, partition, offset: at }], PATIENCE_MS))[0].offset
    }
    this.consumer.assign([{ topic, partition, offset }])
  }

  async take ({ count, timeout_ms: timeoutMs }) {
    const consume = promisify(this.consumer.consume.bind(this.consumer))
    return take(count, timeoutMs, async more => (await consume(more)).map(found))
  }

  async close () {
    await promisify(this.consumer.disconnect.bind(this.consumer))()
  }

  async delete_records ({ topic, partition, before }) {
    await this.call('deleteRecords', [{ topic, partition, offset: before }], { timeout: PATIENCE_MS })
  }

  async add_partitions ({ topic, total }) {
    await this.call('createPartitions', topic, total, PATIENCE_MS)
  }

  async delete ({ topic }) {
    await this.call('deleteTopic', topic, PATIENCE_MS)
  }

  call (name, ...request) {
    return promisify(this.admin[name].bind(this.admin))(...request)
  }
}

function connected (client) {
  return promisify(client.connect.bind(client))({ timeout: PATIENCE_MS })
}

function found (message) {
  const headers = (message.headers ?? []).flatMap(header => Object.entries(header))
  return {
    offset: message.offset,
    timestamp: message.timestamp,
    key: encode(message.key),
    value: encode(message.value),
    headers: headers.map(([name, value]) => [name, encode(value)])
  }
}

const manifest = createRequire(import.meta.url).resolve('@confluentinc/kafka-javascript/package.json')
const { version } = JSON.parse(readFileSync(manifest))
// A buffer of no bytes has no address, which librdkafka takes for null.
const lacks = ['null headers', 'empty values']
await serve(new Client(process.argv[2]), `${version} on librdkafka ${kafka.librdkafkaVersion}`, lacks)
