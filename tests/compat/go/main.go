// franz-go against a broker: create, produce, read back by assignment, list and delete.
//
// Prints one line per check, "pass<TAB>what" or "fail<TAB>what<TAB>why". The client keeps its
// defaults (idempotence, acks=all) except for timeouts, so that a broker that never answers fails
// a check instead of stalling the suite. Partitions are consumed directly; there is no group.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	recordCount    = 2000
	partitionCount = 2
	patience       = 20 * time.Second
)

var (
	// An hour ago: records older than the default retention could be deleted before they are read.
	firstTimestamp = time.UnixMilli(time.Now().Add(-time.Hour).UnixMilli())
	run            = strconv.FormatInt(time.Now().UnixMilli(), 36)
)

type suite struct {
	bootstrap string
	admin     *kadm.Client
}

type compression struct {
	name  string
	codec kgo.CompressionCodec
}

// place is where the broker said that a record is, or where a reader found it.
type place struct {
	partition int32
	offset    int64
}

func main() {
	client, err := kgo.NewClient(kgo.SeedBrokers(os.Args[1]), kgo.RetryTimeout(patience))
	if err != nil {
		fmt.Printf("fail\tclient\t%v\n", err)
		os.Exit(1)
	}
	defer client.Close()
	s := &suite{bootstrap: os.Args[1], admin: kadm.NewClient(client)}
	s.check("describe the cluster", s.describesCluster)
	s.check("create a topic, create it again", s.createsTopic)
	for _, how := range []compression{
		{"none", kgo.NoCompression()},
		{"gzip", kgo.GzipCompression()},
		{"snappy", kgo.SnappyCompression()},
		{"lz4", kgo.Lz4Compression()},
		{"zstd", kgo.ZstdCompression()},
	} {
		s.check("produce and read back: "+how.name, func(ctx context.Context) error {
			return s.readsBackEqual(ctx, how)
		})
	}
	s.check("list offsets: earliest, latest, max timestamp, by time", s.listsOffsets)
	s.check("offset for leader epoch", s.offsetForLeaderEpoch)
	s.check("start at an offset and at a time", s.startsInTheMiddle)
	s.check("delete records", s.deletesRecords)
	s.check("delete a topic", s.deletesTopic)
}

func (s *suite) check(what string, body func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := body(ctx); err != nil {
		fmt.Printf("fail\t%s\t%s\n", what, strings.Join(strings.Fields(err.Error()), " "))
		return
	}
	fmt.Printf("pass\t%s\n", what)
}

func (s *suite) describesCluster(ctx context.Context) error {
	metadata, err := s.admin.BrokerMetadata(ctx)
	if err != nil {
		return err
	}
	if len(metadata.Brokers) != 1 || metadata.Cluster == "" || metadata.Controller < 0 {
		return fmt.Errorf("unexpected cluster: %+v", metadata)
	}
	return nil
}

func (s *suite) createsTopic(ctx context.Context) error {
	topic, err := s.create(ctx, "created")
	if err != nil {
		return err
	}
	details, err := s.admin.ListTopics(ctx, topic)
	if err != nil {
		return err
	}
	if got := len(details[topic].Partitions); got != partitionCount {
		return fmt.Errorf("wanted %d partitions, got %d", partitionCount, got)
	}
	if details[topic].ID == (kadm.TopicID{}) {
		return errors.New("zero topic id")
	}
	_, err = s.create(ctx, "created")
	if !errors.Is(err, kerr.TopicAlreadyExists) {
		return fmt.Errorf("wanted TOPIC_ALREADY_EXISTS, got %v", err)
	}
	return nil
}

func (s *suite) readsBackEqual(ctx context.Context, how compression) error {
	topic, err := s.create(ctx, "equal-"+how.name)
	if err != nil {
		return err
	}
	producer, err := s.client(
		kgo.DefaultProduceTopic(topic),
		kgo.ProducerBatchCompression(how.codec),
		kgo.ProducerLinger(20*time.Millisecond),
	)
	if err != nil {
		return err
	}
	defer producer.Close()
	records := make([]*kgo.Record, recordCount)
	for index := range records {
		records[index] = record(index)
	}
	if err := producer.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return err
	}
	sent := map[place]*kgo.Record{}
	for _, record := range records {
		sent[place{record.Partition, record.Offset}] = record
	}
	if len(sent) != recordCount {
		return fmt.Errorf("%d records were acknowledged at %d places", recordCount, len(sent))
	}
	read, err := s.read(ctx, topic, recordCount, kgo.NewOffset().AtStart())
	if err != nil {
		return err
	}
	for _, record := range read {
		where := place{record.Partition, record.Offset}
		wanted := sent[where]
		if wanted == nil {
			return fmt.Errorf("not sent, or read twice: %v", where)
		}
		delete(sent, where)
		if err := same(wanted, record); err != nil {
			return fmt.Errorf("%v: %w", where, err)
		}
	}
	return nil
}

func (s *suite) listsOffsets(ctx context.Context) error {
	topic, err := s.filled(ctx, "offsets")
	if err != nil {
		return err
	}
	middle := firstTimestamp.Add(400 * time.Millisecond).UnixMilli()
	latestMilli := firstTimestamp.Add(999 * time.Millisecond).UnixMilli()
	type listing struct {
		what            string
		list            func() (kadm.ListedOffsets, error)
		offset          int64
		timestampMillis int64
	}
	for _, want := range []listing{
		{"earliest", func() (kadm.ListedOffsets, error) { return s.admin.ListStartOffsets(ctx, topic) }, 0, -1},
		{"latest", func() (kadm.ListedOffsets, error) { return s.admin.ListEndOffsets(ctx, topic) }, 1000, -1},
		{"committed", func() (kadm.ListedOffsets, error) { return s.admin.ListCommittedOffsets(ctx, topic) }, 1000, -1},
		{"max timestamp", func() (kadm.ListedOffsets, error) { return s.admin.ListMaxTimestampOffsets(ctx, topic) }, 999, latestMilli},
		{"by time", func() (kadm.ListedOffsets, error) { return s.admin.ListOffsetsAfterMilli(ctx, middle, topic) }, 400, middle},
	} {
		listed, err := want.list()
		if err != nil {
			return err
		}
		got, found := listed.Lookup(topic, 0)
		if !found || got.Err != nil {
			return fmt.Errorf("%s: not found, %v", want.what, got.Err)
		}
		if got.Offset != want.offset || got.Timestamp != want.timestampMillis {
			return fmt.Errorf("%s: wanted %d at %d, got %d at %d",
				want.what, want.offset, want.timestampMillis, got.Offset, got.Timestamp)
		}
	}
	return nil
}

func (s *suite) offsetForLeaderEpoch(ctx context.Context) error {
	topic, err := s.filled(ctx, "epoch")
	if err != nil {
		return err
	}
	var request kadm.OffsetForLeaderEpochRequest
	request.Add(topic, 0, 0)
	response, err := s.admin.OffsetForLeaderEpoch(ctx, request)
	if err != nil {
		return err
	}
	got := response[topic][0]
	if got.Err != nil || got.LeaderEpoch != 0 || got.EndOffset != 1000 {
		return fmt.Errorf("wanted epoch 0 to end at 1000, got %+v", got)
	}
	return nil
}

func (s *suite) startsInTheMiddle(ctx context.Context) error {
	topic, err := s.filled(ctx, "middle")
	if err != nil {
		return err
	}
	atTime := firstTimestamp.Add(567 * time.Millisecond).UnixMilli()
	for _, start := range []kgo.Offset{kgo.NewOffset().At(567), kgo.NewOffset().AfterMilli(atTime)} {
		read, err := s.read(ctx, topic, 1000-567, start)
		if err != nil {
			return err
		}
		if read[0].Offset != 567 {
			return fmt.Errorf("wanted to start at 567, got %d", read[0].Offset)
		}
	}
	return nil
}

func (s *suite) deletesRecords(ctx context.Context) error {
	topic, err := s.filled(ctx, "delete-records")
	if err != nil {
		return err
	}
	var before kadm.Offsets
	before.AddOffset(topic, 0, 300, -1)
	deleted, err := s.admin.DeleteRecords(ctx, before)
	if err != nil {
		return err
	}
	if got := deleted[topic][0]; got.Err != nil || got.LowWatermark != 300 {
		return fmt.Errorf("wanted low watermark 300, got %+v", got)
	}
	read, err := s.read(ctx, topic, 700, kgo.NewOffset().AtStart())
	if err != nil {
		return err
	}
	if read[0].Offset != 300 {
		return fmt.Errorf("wanted to start at 300, got %d", read[0].Offset)
	}
	return nil
}

func (s *suite) deletesTopic(ctx context.Context) error {
	topic, err := s.create(ctx, "deleted")
	if err != nil {
		return err
	}
	if _, err := s.admin.DeleteTopic(ctx, topic); err != nil {
		return err
	}
	// The controller answers before every broker knows, so metadata may lag behind.
	for ctx.Err() == nil {
		left, err := s.admin.ListTopics(ctx)
		if err != nil {
			return err
		}
		if !left.Has(topic) {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return errors.New("still listed")
}

func (s *suite) client(options ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(s.bootstrap), kgo.RetryTimeout(patience),
	}, options...)...)
}

func (s *suite) create(ctx context.Context, purpose string) (string, error) {
	topic := "go-" + purpose + "-" + run
	_, err := s.admin.CreateTopic(ctx, partitionCount, 1, nil, topic)
	return topic, err
}

// filled makes a topic whose partition 0 holds 1,000 records, a millisecond apart.
func (s *suite) filled(ctx context.Context, purpose string) (string, error) {
	topic, err := s.create(ctx, purpose)
	if err != nil {
		return "", err
	}
	producer, err := s.client(
		kgo.DefaultProduceTopic(topic), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return "", err
	}
	defer producer.Close()
	records := make([]*kgo.Record, 1000)
	for index := range records {
		records[index] = record(index)
	}
	return topic, producer.ProduceSync(ctx, records...).FirstErr()
}

// read returns count records of all partitions and fails on a gap.
func (s *suite) read(ctx context.Context, topic string, count int, start kgo.Offset) ([]*kgo.Record, error) {
	partitions := map[int32]kgo.Offset{}
	for partition := range int32(partitionCount) {
		partitions[partition] = start
	}
	if start.EpochOffset().Offset > 0 { // an exact offset is meant for partition 0 alone
		delete(partitions, 1)
	}
	consumer, err := s.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: partitions}))
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	var read []*kgo.Record
	next := map[int32]int64{}
	for len(read) < count {
		fetches := consumer.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, fmt.Errorf("%d of %d records read: %w", len(read), count, err)
		}
		for _, record := range fetches.Records() {
			if wanted, seen := next[record.Partition]; seen && wanted != record.Offset {
				return nil, fmt.Errorf("a gap before offset %d", record.Offset)
			}
			next[record.Partition] = record.Offset + 1
			read = append(read, record)
		}
	}
	if len(read) != count {
		return nil, fmt.Errorf("wanted %d records, got %d", count, len(read))
	}
	return read, nil
}

func record(index int) *kgo.Record {
	return &kgo.Record{
		Key:       []byte(fmt.Sprintf("key %d", index)),
		Value:     []byte(strings.Repeat(fmt.Sprintf("value %d ", index), 1+index%40)),
		Timestamp: firstTimestamp.Add(time.Duration(index) * time.Millisecond),
		Headers: []kgo.RecordHeader{
			{Key: "index", Value: []byte(strconv.Itoa(index))},
			{Key: "null", Value: nil},
			{Key: "index", Value: []byte("again ✓")},
		},
	}
}

func same(sent, read *kgo.Record) error {
	switch {
	case !bytes.Equal(sent.Key, read.Key):
		return fmt.Errorf("key: wanted %q, got %q", sent.Key, read.Key)
	case !bytes.Equal(sent.Value, read.Value):
		return fmt.Errorf("value: wanted %q, got %q", sent.Value, read.Value)
	case !sent.Timestamp.Equal(read.Timestamp):
		return fmt.Errorf("timestamp: wanted %v, got %v", sent.Timestamp, read.Timestamp)
	case len(sent.Headers) != len(read.Headers):
		return fmt.Errorf("headers: wanted %v, got %v", sent.Headers, read.Headers)
	}
	for index, wanted := range sent.Headers {
		got := read.Headers[index]
		if wanted.Key != got.Key || !bytes.Equal(wanted.Value, got.Value) || (got.Value == nil) != (wanted.Value == nil) {
			return fmt.Errorf("header %d: wanted %v, got %v", index, wanted, got)
		}
	}
	return nil
}
