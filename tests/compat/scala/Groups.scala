import com.fasterxml.jackson.databind.JsonNode
import java.time.Duration
import java.util.Properties
import org.apache.kafka.clients.admin.{Admin, ListConsumerGroupOffsetsSpec}
import org.apache.kafka.clients.consumer.{KafkaConsumer, OffsetAndMetadata}
import org.apache.kafka.clients.producer.{KafkaProducer, ProducerRecord}
import org.apache.kafka.common.TopicPartition
import org.apache.kafka.common.serialization.{ByteArrayDeserializer, ByteArraySerializer}
import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.Using

/** Members of groups, transactions, and the administration of both; see `group_calls.py`. */
class Groups(admin: Admin, settings: Map[String, String] => Properties) {
  import Driver.{Bytes, json}

  private val copied = "copy of ".getBytes
  private val members = mutable.Map.empty[String, KafkaConsumer[Bytes, Bytes]]

  def answer(request: JsonNode): JsonNode = {
    val group = request.path("group").asText
    val topic = request.path("topic").asText
    val place = new TopicPartition(topic, request.path("partition").asInt)
    def member = members(request.get("member").asText)
    val answer = json.arrayNode()
    request.get("do").asText match {
      case "join" =>
        members(request.get("member").asText) = joined(group, topic, request.get("protocol").asText)
        json.nullNode
      case "poll" =>
        val polled = member.poll(Duration.ofMillis(request.get("timeout_ms").asLong))
        polled.forEach(record => Driver.describe(record, answer.addObject()))
        answer
      case "assigned" =>
        member.assignment.forEach(owned => answer.add(owned.partition))
        answer
      case "commit" =>
        member.commitSync()
        json.nullNode
      case "leave" =>
        members.remove(request.get("member").asText).foreach(_.close())
        json.nullNode
      case "commit_offset" =>
        val committed = new OffsetAndMetadata(request.get("offset").asLong, request.get("metadata").asText)
        admin.alterConsumerGroupOffsets(group, Map(place -> committed).asJava).all.get
        json.nullNode
      case "committed" => committed(group, place)
      case "list_groups" =>
        admin.listConsumerGroups.all.get.forEach(listed => answer.add(listed.groupId))
        answer
      case "describe_group" =>
        val described = admin.describeConsumerGroups(Seq(group).asJava).all.get.get(group)
        val state = described.groupState.toString.toLowerCase
        json.objectNode().put("state", state).put("members", described.members.size)
      case "delete_group" =>
        admin.deleteConsumerGroups(Seq(group).asJava).all.get
        json.nullNode
      case "transaction" =>
        transaction(request) { producer =>
          for ((line, index) <- request.get("records").asScala.zipWithIndex)
            producer.send(Driver.record(new TopicPartition(topic, index % 2), line))
        }
      case "copy" =>
        Using.resource(joined(group, topic, "classic")) { consumer =>
          transaction(request)(producer => copy(consumer, producer, request))
        }
    }
  }

  private def joined(group: String, topic: String, protocol: String): KafkaConsumer[Bytes, Bytes] = {
    val bytes = new ByteArrayDeserializer
    val consumer = new KafkaConsumer[Bytes, Bytes](settings(Map(
      "group.id" -> group,
      "group.protocol" -> protocol,
      "enable.auto.commit" -> "false",
      "auto.offset.reset" -> "earliest",
      "isolation.level" -> "read_committed")), bytes, bytes)
    consumer.subscribe(Seq(topic).asJava)
    consumer
  }

  private def committed(group: String, place: TopicPartition): JsonNode = {
    val spec = new ListConsumerGroupOffsetsSpec().topicPartitions(Seq(place).asJava)
    val found = admin.listConsumerGroupOffsets(Map(group -> spec).asJava).partitionsToOffsetAndMetadata(group).get
    Option(found.get(place)) match {
      case None => json.nullNode
      case Some(row) => json.objectNode().put("offset", row.offset).put("metadata", row.metadata)
    }
  }

  private def transaction(request: JsonNode)(body: KafkaProducer[Bytes, Bytes] => Unit): JsonNode = {
    val bytes = new ByteArraySerializer
    val mine = settings(Map(
      "transactional.id" -> request.get("transactional_id").asText,
      "delivery.timeout.ms" -> "15000",
      "max.block.ms" -> "15000"))
    Using.resource(new KafkaProducer[Bytes, Bytes](mine, bytes, bytes)) { producer =>
      producer.initTransactions()
      producer.beginTransaction()
      body(producer)
      producer.flush() // so that the log has what is aborted
      if (request.get("commit").asBoolean) producer.commitTransaction() else producer.abortTransaction()
    }
    json.nullNode
  }

  private def copy(
      consumer: KafkaConsumer[Bytes, Bytes], producer: KafkaProducer[Bytes, Bytes], request: JsonNode): Unit = {
    val (target, count) = (request.get("target").asText, request.get("count").asInt)
    val deadline = System.nanoTime + 40L * 1000000000
    val next = mutable.Map.empty[TopicPartition, OffsetAndMetadata]
    var left = count
    while (left > 0) {
      require(System.nanoTime < deadline, s"$left of $count records not read")
      // What is beyond the count is left to the next copy.
      for (record <- consumer.poll(Duration.ofMillis(100)).asScala.take(left)) {
        producer.send(new ProducerRecord[Bytes, Bytes](
          target, record.partition, record.timestamp, record.key, copied ++ record.value, record.headers))
        next(new TopicPartition(record.topic, record.partition)) = new OffsetAndMetadata(record.offset + 1)
        left -= 1
      }
    }
    producer.sendOffsetsToTransaction(next.asJava, consumer.groupMetadata)
  }
}
