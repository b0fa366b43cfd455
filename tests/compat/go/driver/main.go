// franz-go as a driver: a line of JSON in, a call, a line of JSON out; see driver.py.
package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const patience = 20 * time.Second

// request holds the fields of every call; each call has some of them. Bytes are in base64.
type request struct {
	Do         string
	Topic      string
	Partition  int32
	Partitions int32
	Config     map[string]*string
	Codec      string
	Records    []line
	Start      string
	At         int64
	Count      int
	TimeoutMs  int `json:"timeout_ms"`
	Before     int64
	Total      int

	Member          string
	Group           string
	Protocol        string
	Offset          int64
	Metadata        string
	TransactionalID string `json:"transactional_id"`
	Commit          bool
	Target          string
}

type line struct {
	Offset    int64       `json:"offset"`
	Key       *[]byte     `json:"key"`
	Value     *[]byte     `json:"value"`
	Timestamp int64       `json:"timestamp"`
	Headers   [][2]header `json:"headers"`
}

// header is a name, which is text, or a value, which is base64 or null.
type header = *string

type driver struct {
	bootstrap string
	admin     *kadm.Client
	consumer  *kgo.Client
	members   map[string]*groupMember
}

func main() {
	client, err := kgo.NewClient(kgo.SeedBrokers(os.Args[1]), kgo.RetryTimeout(patience))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	d := &driver{bootstrap: os.Args[1], admin: kadm.NewClient(client), members: map[string]*groupMember{}}
	say(map[string]any{"version": version(), "lacks": []string{}})
	input := bufio.NewReader(os.Stdin)
	for {
		text, err := input.ReadBytes('\n')
		if err != nil {
			return
		}
		answer, err := d.answer(text)
		if err != nil {
			say(map[string]any{"error": err.Error()})
		} else {
			say(map[string]any{"ok": answer})
		}
	}
}

func say(answer any) {
	text, err := json.Marshal(answer)
	if err != nil {
		panic(err) // only what is made in this file is marshalled
	}
	fmt.Println(string(text))
}

func version() string {
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if module.Path == "github.com/twmb/franz-go" {
			return module.Version
		}
	}
	return "unknown"
}

func (d *driver) answer(text []byte) (any, error) {
	var r request
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	switch r.Do {
	case "create":
		_, err := d.admin.CreateTopic(ctx, r.Partitions, 1, r.Config, r.Topic)
		return nil, err
	case "describe":
		return d.describe(ctx, r.Topic)
	case "alter":
		return nil, d.alter(ctx, r.Topic, r.Config)
	case "partitions":
		topics, err := d.admin.ListTopics(ctx)
		return len(topics[r.Topic].Partitions), err
	case "produce":
		return d.produce(ctx, r)
	case "open":
		return nil, d.open(r)
	case "take":
		return d.take(r.Count, time.Duration(r.TimeoutMs)*time.Millisecond)
	case "close":
		d.consumer.Close()
		return nil, nil
	case "delete_records":
		var before kadm.Offsets
		before.AddOffset(r.Topic, r.Partition, r.Before, -1)
		deleted, err := d.admin.DeleteRecords(ctx, before)
		return nil, errors.Join(err, deleted.Error())
	case "add_partitions":
		responses, err := d.admin.UpdatePartitions(ctx, r.Total, r.Topic)
		return nil, errors.Join(err, responses.Error())
	case "delete":
		responses, err := d.admin.DeleteTopics(ctx, r.Topic)
		return nil, errors.Join(err, responses.Error())
	}
	return d.answerGroups(ctx, r)
}

func (d *driver) describe(ctx context.Context, topic string) (map[string]*string, error) {
	described, err := d.admin.DescribeTopicConfigs(ctx, topic)
	if err != nil {
		return nil, err
	}
	resource, err := described.On(topic, nil)
	if err = errors.Join(err, resource.Err); err != nil {
		return nil, err
	}
	found := map[string]*string{}
	for _, config := range resource.Configs {
		found[config.Key] = config.Value
	}
	return found, nil
}

func (d *driver) alter(ctx context.Context, topic string, config map[string]*string) error {
	var changes []kadm.AlterConfig
	for name, value := range config {
		changes = append(changes, kadm.AlterConfig{Op: kadm.SetConfig, Name: name, Value: value})
	}
	altered, err := d.admin.AlterTopicConfigs(ctx, changes, topic)
	if err != nil {
		return err
	}
	response, err := altered.On(topic, nil)
	return errors.Join(err, response.Err)
}

func (d *driver) produce(ctx context.Context, r request) ([]int64, error) {
	codecs := map[string]kgo.CompressionCodec{
		"none":   kgo.NoCompression(),
		"gzip":   kgo.GzipCompression(),
		"snappy": kgo.SnappyCompression(),
		"lz4":    kgo.Lz4Compression(),
		"zstd":   kgo.ZstdCompression(),
	}
	producer, err := d.client(
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(codecs[r.Codec]),
		kgo.ProducerBatchMaxBytes(1_048_588),
		kgo.ProducerLinger(20*time.Millisecond),
	)
	if err != nil {
		return nil, err
	}
	defer producer.Close()
	records, err := kgoRecords(r)
	if err != nil {
		return nil, err
	}
	if err := producer.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return nil, err
	}
	offsets := make([]int64, len(records))
	for index, record := range records {
		offsets[index] = record.Offset
	}
	return offsets, nil
}

func kgoRecords(r request) ([]*kgo.Record, error) {
	records := make([]*kgo.Record, len(r.Records))
	for index, sent := range r.Records {
		records[index] = &kgo.Record{
			Topic:     r.Topic,
			Partition: r.Partition,
			Key:       content(sent.Key),
			Value:     content(sent.Value),
			Timestamp: time.UnixMilli(sent.Timestamp),
		}
		for _, pair := range sent.Headers {
			value, err := decoded(pair[1])
			if err != nil {
				return nil, err
			}
			records[index].Headers = append(records[index].Headers, kgo.RecordHeader{Key: *pair[0], Value: value})
		}
	}
	return records, nil
}

func (d *driver) open(r request) error {
	starts := map[string]kgo.Offset{
		"earliest":  kgo.NewOffset().AtStart(),
		"latest":    kgo.NewOffset().AtEnd(),
		"offset":    kgo.NewOffset().At(r.At),
		"timestamp": kgo.NewOffset().AfterMilli(r.At),
	}
	var err error
	d.consumer, err = d.client(kgo.ConsumePartitions(
		map[string]map[int32]kgo.Offset{r.Topic: {r.Partition: starts[r.Start]}}))
	return err
}

func (d *driver) take(count int, timeout time.Duration) ([]line, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	read := []line{}
	for len(read) < count {
		fetches := d.consumer.PollFetches(ctx)
		if err := fetches.Err(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return nil, err
		}
		for _, record := range fetches.Records() {
			read = append(read, found(record))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return read, nil
}

func found(record *kgo.Record) line {
	out := line{
		Offset:    record.Offset,
		Key:       nullable(record.Key),
		Value:     nullable(record.Value),
		Timestamp: record.Timestamp.UnixMilli(),
		Headers:   [][2]header{},
	}
	for _, header := range record.Headers {
		out.Headers = append(out.Headers, [2]*string{&header.Key, encoded(header.Value)})
	}
	return out
}

func (d *driver) client(options ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(d.bootstrap), kgo.RetryTimeout(patience),
	}, options...)...)
}

func content(value *[]byte) []byte {
	if value == nil {
		return nil
	}
	return *value
}

func nullable(value []byte) *[]byte {
	if value == nil {
		return nil
	}
	return &value
}

func decoded(text *string) ([]byte, error) {
	if text == nil {
		return nil, nil
	}
	return base64.StdEncoding.DecodeString(*text)
}

func encoded(value []byte) *string {
	if value == nil {
		return nil
	}
	text := base64.StdEncoding.EncodeToString(value)
	return &text
}
