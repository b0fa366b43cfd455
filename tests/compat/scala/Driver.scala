import com.fasterxml.jackson.databind.node.{JsonNodeFactory, ObjectNode}
import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import java.time.Duration
import java.util.Properties
import org.apache.kafka.clients.admin.{Admin, AlterConfigOp, ConfigEntry, NewPartitions, NewTopic, RecordsToDelete}
import org.apache.kafka.clients.consumer.{ConsumerRecord, KafkaConsumer}
import org.apache.kafka.clients.producer.{KafkaProducer, ProducerRecord}
import org.apache.kafka.common.TopicPartition
import org.apache.kafka.common.config.ConfigResource
import org.apache.kafka.common.header.Header
import org.apache.kafka.common.header.internals.RecordHeader
import org.apache.kafka.common.serialization.{ByteArrayDeserializer, ByteArraySerializer}
import scala.io.{Codec, Source}
import scala.jdk.CollectionConverters._
import scala.util.{Failure, Success, Try, Using}

/** kafka-clients from Scala: a line of JSON in, a call, a line of JSON out; see `driver.py`. */
object Driver {
  type Bytes = Array[Byte]
  val json = JsonNodeFactory.instance
  private val mapper = new ObjectMapper()

  def main(arguments: Array[String]): Unit = {
    val driver = new Driver(arguments(0))
    val version = s"${util.Properties.versionNumberString}"
    println(json.objectNode().put("version", version).set[JsonNode]("lacks", json.arrayNode()))
    for (line <- Source.fromInputStream(System.in)(Codec.UTF8).getLines()) {
      val answer = json.objectNode()
      Try(driver.answer(mapper.readTree(line))) match {
        case Success(result) => answer.set[JsonNode]("ok", result)
        case Failure(error) => answer.put("error", error.toString)
      }
      println(answer)
    }
    sys.exit(0)
  }

  def record(place: TopicPartition, line: JsonNode): ProducerRecord[Bytes, Bytes] = {
    val headers: Seq[Header] = line.get("headers").asScala.toSeq.map { header =>
      new RecordHeader(header.get(0).asText, bytes(header.get(1)))
    }
    new ProducerRecord[Bytes, Bytes](
      place.topic, place.partition, line.get("timestamp").asLong,
      bytes(line.get("key")), bytes(line.get("value")), headers.asJava)
  }

  def describe(record: ConsumerRecord[Bytes, Bytes], line: ObjectNode): Unit = {
    line.put("partition", record.partition).put("offset", record.offset).put("timestamp", record.timestamp)
    line.set[JsonNode]("key", text(record.key))
    line.set[JsonNode]("value", text(record.value))
    val headers = line.putArray("headers")
    record.headers.forEach(header => headers.addArray().add(header.key).add(text(header.value)))
  }

  private def bytes(text: JsonNode): Bytes = if (text.isNull) null else text.binaryValue
  private def text(value: Bytes): JsonNode = if (value == null) json.nullNode else json.binaryNode(value)
}

class Driver(bootstrap: String) {
  import Driver.{Bytes, json}

  private val admin = Admin.create(settings())
  private val groups = new Groups(admin, settings)
  private var consumer: Option[KafkaConsumer[Bytes, Bytes]] = None

  def answer(request: JsonNode): JsonNode = {
    val topic = request.path("topic").asText
    val partition = new TopicPartition(topic, request.path("partition").asInt)
    request.get("do").asText match {
      case "describe" => describe(topic)
      case "partitions" => json.numberNode(partitions(topic))
      case "produce" => produce(partition, request.get("codec").asText, request.get("records").asScala.toSeq)
      case "take" => take(request.get("count").asInt, request.get("timeout_ms").asLong)
      case other =>
        other match {
          case "create" =>
            val created = new NewTopic(topic, request.get("partitions").asInt, 1.toShort)
            admin.createTopics(Seq(created.configs(config(request).asJava)).asJava).all.get
          case "alter" => alter(topic, config(request))
          case "open" => open(partition, request.get("start").asText, request.get("at").asLong)
          case "close" => consumer.foreach(_.close())
          case "delete_records" =>
            val before = RecordsToDelete.beforeOffset(request.get("before").asLong)
            admin.deleteRecords(Map(partition -> before).asJava).all.get
          case "add_partitions" =>
            val total = NewPartitions.increaseTo(request.get("total").asInt)
            admin.createPartitions(Map(topic -> total).asJava).all.get
          case "delete" => admin.deleteTopics(Seq(topic).asJava).all.get
          case _ => return groups.answer(request)
        }
        json.nullNode
    }
  }

  private def config(request: JsonNode): Map[String, String] =
    request.get("config").fields.asScala.map(field => field.getKey -> field.getValue.asText).toMap

  private def describe(topic: String): JsonNode = {
    val resource = new ConfigResource(ConfigResource.Type.TOPIC, topic)
    val found = json.objectNode()
    val described = admin.describeConfigs(Seq(resource).asJava).all.get.get(resource)
    described.entries.forEach(entry => found.put(entry.name, entry.value))
    found
  }

  private def alter(topic: String, config: Map[String, String]): Unit = {
    val changes = config.map { case (name, value) =>
      new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET)
    }
    val resource = new ConfigResource(ConfigResource.Type.TOPIC, topic)
    admin.incrementalAlterConfigs(Map(resource -> changes.asJavaCollection).asJava).all.get
  }

  private def partitions(topic: String): Int =
    if (admin.listTopics.names.get.contains(topic))
      admin.describeTopics(Seq(topic).asJava).allTopicNames.get.get(topic).partitions.size
    else 0

  private def produce(place: TopicPartition, codec: String, records: Seq[JsonNode]): JsonNode = {
    val more = Map(
      "compression.type" -> codec,
      "max.request.size" -> "2000000",
      "delivery.timeout.ms" -> "15000",
      "max.block.ms" -> "15000")
    val serializer = new ByteArraySerializer
    val offsets = json.arrayNode()
    Using.resource(new KafkaProducer[Bytes, Bytes](settings(more), serializer, serializer)) { producer =>
      val waiting = records.map { record =>
        producer.send(Driver.record(place, record))
      }
      waiting.foreach(place => offsets.add(place.get.offset))
    }
    offsets
  }

  private def open(place: TopicPartition, start: String, at: Long): Unit = {
    val deserializer = new ByteArrayDeserializer
    val opened = new KafkaConsumer[Bytes, Bytes](
      settings(Map("auto.offset.reset" -> "none")), deserializer, deserializer)
    opened.assign(Seq(place).asJava)
    start match {
      case "earliest" => opened.seekToBeginning(Seq(place).asJava)
      case "latest" => opened.seekToEnd(Seq(place).asJava)
      case "offset" => opened.seek(place, at)
      case "timestamp" =>
        opened.seek(place, opened.offsetsForTimes(Map(place -> Long.box(at)).asJava).get(place).offset)
    }
    consumer = Some(opened)
  }

  private def take(count: Int, timeoutMs: Long): JsonNode = {
    val read = json.arrayNode()
    val deadline = System.nanoTime + timeoutMs * 1000000
    while (read.size < count && System.nanoTime < deadline)
      consumer.get.poll(Duration.ofMillis(100)).forEach(record => Driver.describe(record, read.addObject()))
    read
  }

  private def settings(more: Map[String, String] = Map.empty): Properties = {
    val settings = new Properties
    settings.put("bootstrap.servers", bootstrap)
    settings.put("request.timeout.ms", "10000")
    more.foreach { case (name, value) => settings.put(name, value) }
    settings
  }
}
