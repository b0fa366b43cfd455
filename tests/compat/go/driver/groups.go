// Members of groups, transactions, and the administration of both; see group_calls.py.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const copied = "copy of "

type polledLine struct {
	line
	Partition int32 `json:"partition"`
}

type committedLine struct {
	Offset   int64  `json:"offset"`
	Metadata string `json:"metadata"`
}

type groupLine struct {
	State   string `json:"state"`
	Members int    `json:"members"`
}

// groupMember is a consumer and the partitions that it owns, as its callbacks tell.
type groupMember struct {
	client *kgo.Client
	lock   sync.Mutex
	owned  map[int32]bool
}

func (d *driver) join(r request) error {
	member := &groupMember{owned: map[int32]bool{}}
	change := func(owned bool) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
			member.lock.Lock()
			defer member.lock.Unlock()
			for _, partition := range partitions[r.Topic] {
				if owned {
					member.owned[partition] = true
				} else {
					delete(member.owned, partition)
				}
			}
		}
	}
	var err error
	member.client, err = d.client(append(
		memberOptions(r.Group, r.Topic, r.Protocol),
		kgo.OnPartitionsAssigned(change(true)),
		kgo.OnPartitionsRevoked(change(false)),
		kgo.OnPartitionsLost(change(false)),
	)...)
	d.members[r.Member] = member
	return err
}

func (m *groupMember) assigned() []int32 {
	m.lock.Lock()
	defer m.lock.Unlock()
	return slices.Collect(maps.Keys(m.owned))
}

func (d *driver) answerGroups(ctx context.Context, r request) (any, error) {
	switch r.Do {
	case "join":
		return nil, d.join(r)
	case "poll":
		return poll(d.members[r.Member].client, time.Duration(r.TimeoutMs)*time.Millisecond)
	case "assigned":
		return append([]int32{}, d.members[r.Member].assigned()...), nil
	case "commit":
		return nil, d.members[r.Member].client.CommitUncommittedOffsets(ctx)
	case "leave":
		d.members[r.Member].client.Close()
		delete(d.members, r.Member)
		return nil, nil
	case "commit_offset":
		offsets := kadm.Offsets{}
		offsets.Add(kadm.Offset{
			Topic: r.Topic, Partition: r.Partition, At: r.Offset, LeaderEpoch: -1, Metadata: r.Metadata,
		})
		return nil, d.admin.CommitAllOffsets(ctx, r.Group, offsets)
	case "committed":
		return d.committed(ctx, r)
	case "list_groups":
		listed, err := d.admin.ListGroups(ctx)
		return listed.Groups(), err
	case "describe_group":
		return d.describeGroup(ctx, r.Group)
	case "delete_group":
		deleted, err := d.admin.DeleteGroup(ctx, r.Group)
		return nil, errors.Join(err, deleted.Err)
	case "transaction":
		return nil, d.transaction(ctx, r)
	case "copy":
		return nil, d.copy(ctx, r)
	}
	return nil, fmt.Errorf("unknown: %s", r.Do)
}

func memberOptions(group, topic, protocol string) []kgo.Opt {
	options := []kgo.Opt{
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
	}
	if protocol == "consumer" {
		options = append(options, kgo.ServerSideBalancer())
	}
	return options
}

func poll(client *kgo.Client, timeout time.Duration) ([]polledLine, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	fetches := client.PollFetches(ctx)
	if err := fetches.Err(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return nil, err
	}
	read := []polledLine{}
	for _, record := range fetches.Records() {
		read = append(read, polledLine{found(record), record.Partition})
	}
	return read, nil
}

func (d *driver) committed(ctx context.Context, r request) (*committedLine, error) {
	responses, err := d.admin.FetchOffsets(ctx, r.Group)
	if err != nil {
		return nil, err
	}
	found, exists := responses.Lookup(r.Topic, r.Partition)
	if !exists || found.At < 0 {
		return nil, responses.Error()
	}
	return &committedLine{found.At, found.Metadata}, found.Err
}

func (d *driver) describeGroup(ctx context.Context, group string) (*groupLine, error) {
	described, err := d.admin.DescribeGroups(ctx, group)
	if err != nil {
		return nil, err
	}
	found, err := described.On(group, nil)
	return &groupLine{strings.ToLower(found.State), len(found.Members)}, errors.Join(err, found.Err)
}

func (d *driver) transaction(ctx context.Context, r request) error {
	producer, err := d.client(
		kgo.TransactionalID(r.TransactionalID),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
	)
	if err != nil {
		return err
	}
	defer producer.Close()
	if err := producer.BeginTransaction(); err != nil {
		return err
	}
	records, err := kgoRecords(r)
	if err != nil {
		return err
	}
	for index, record := range records {
		record.Partition = int32(index % 2)
	}
	if err := producer.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return err
	}
	return producer.EndTransaction(ctx, kgo.TransactionEndTry(r.Commit))
}

func (d *driver) copy(ctx context.Context, r request) error {
	options := append(
		memberOptions(r.Group, r.Topic, "classic"),
		kgo.SeedBrokers(d.bootstrap),
		kgo.TransactionalID(r.TransactionalID),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.RequireStableFetchOffsets(),
	)
	session, err := kgo.NewGroupTransactSession(options...)
	if err != nil {
		return err
	}
	defer session.Close()
	if err := session.Begin(); err != nil {
		return err
	}
	for left := r.Count; left > 0; {
		fetches := session.Client().PollRecords(ctx, left)
		if err := fetches.Err(); err != nil {
			return err
		}
		for _, record := range fetches.Records() {
			left--
			session.Produce(ctx, &kgo.Record{
				Topic:     r.Target,
				Partition: record.Partition,
				Key:       record.Key,
				Value:     bytes.Join([][]byte{[]byte(copied), record.Value}, nil),
				Headers:   record.Headers,
				Timestamp: record.Timestamp,
			}, nil)
		}
	}
	if !r.Commit {
		if err := session.Client().Flush(ctx); err != nil { // so that the log has what is aborted
			return err
		}
	}
	ended, err := session.End(ctx, kgo.TransactionEndTry(r.Commit))
	if err == nil && ended != r.Commit {
		err = errors.New("the session's transaction was aborted: a rebalance?")
	}
	return err
}
