// Drives franz-go; called as clients/record_lines.py describes.
//
// FRANZ_MAX_VERSIONS, for example 2.4, makes it speak as the clients of that release of Apache Kafka.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"

	"varve.tests/clients/lines"
)

var codecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
	"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

type driver struct{ bootstrap string }

func main() {
	lines.Main(func(bootstrap string) lines.Driver { return &driver{bootstrap} })
}

func (d *driver) open(options ...kgo.Opt) (*kgo.Client, error) {
	options = append(options, kgo.SeedBrokers(d.bootstrap), kgo.FetchMaxWait(100*time.Millisecond))
	if release := os.Getenv("FRANZ_MAX_VERSIONS"); release != "" {
		options = append(options, kgo.MaxVersions(kversion.FromString(release)))
	}
	return kgo.NewClient(options...)
}

func patience() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), lines.Patience)
}

func (d *driver) Create(topic string, partitions int32) error {
	return d.administer(func(ctx context.Context, admin *kadm.Client) error {
		answer, err := admin.CreateTopic(ctx, partitions, 1, nil, topic)
		return errors.Join(err, answer.Err)
	})
}

func (d *driver) Delete(topic string) error {
	return d.administer(func(ctx context.Context, admin *kadm.Client) error {
		answer, err := admin.DeleteTopic(ctx, topic)
		return errors.Join(err, answer.Err)
	})
}

func (d *driver) administer(call func(context.Context, *kadm.Client) error) error {
	client, err := d.open()
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := patience()
	defer cancel()
	return call(ctx, kadm.NewClient(client))
}

func (d *driver) Produce(topic, codec string, records []*lines.Record) ([]int64, error) {
	client, err := d.open(kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(5*time.Millisecond),
		kgo.ProducerBatchCompression(codecs[codec]), kgo.AllowAutoTopicCreation(),
		kgo.MaxBufferedRecords(len(records)+1))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	sent := make([]*kgo.Record, len(records))
	for at, record := range records {
		var headers []kgo.RecordHeader
		for _, header := range record.Headers {
			headers = append(headers, kgo.RecordHeader{Key: header.Name, Value: header.Value})
		}
		sent[at] = &kgo.Record{
			Topic: topic, Partition: record.Partition, Key: record.Key, Value: record.Value, Headers: headers,
			Timestamp: time.UnixMilli(record.Timestamp),
		}
	}
	ctx, cancel := patience()
	defer cancel()
	if err := client.ProduceSync(ctx, sent...).FirstErr(); err != nil {
		return nil, err
	}
	offsets := make([]int64, len(sent))
	for at, record := range sent {
		offsets[at] = record.Offset
	}
	return offsets, nil
}

func (d *driver) Consume(topic string, partitions int32) ([]*lines.Record, error) {
	ends := map[int32]int64{}
	err := d.administer(func(ctx context.Context, admin *kadm.Client) error {
		listed, err := admin.ListEndOffsets(ctx, topic)
		listed.Each(func(end kadm.ListedOffset) { ends[end.Partition] = end.Offset })
		return errors.Join(err, listed.Error())
	})
	if err != nil {
		return nil, err
	}
	starts := map[int32]kgo.Offset{}
	for partition, end := range ends {
		if end > 0 {
			starts[partition] = kgo.NewOffset().At(0)
		}
	}
	read := map[int32][]*lines.Record{}
	err = d.read(topic, starts, kgo.NewOffset().AtStart(), func(record *lines.Record) bool {
		read[record.Partition] = append(read[record.Partition], record)
		if record.Offset == ends[record.Partition]-1 {
			delete(starts, record.Partition)
		}
		return len(starts) == 0
	})
	var records []*lines.Record
	for partition := int32(0); partition < partitions; partition++ {
		records = append(records, read[partition]...)
	}
	return records, err
}

// read calls take for each record from the starts on, until it says that this is all.
func (d *driver) read(topic string, starts map[int32]kgo.Offset, reset kgo.Offset, take func(*lines.Record) bool) error {
	if len(starts) == 0 {
		return nil
	}
	client, err := d.open(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: starts}),
		kgo.ConsumeResetOffset(reset))
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := patience()
	defer cancel()
	for {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return err
		}
		for _, record := range fetches.Records() {
			if take(lineOf(record)) {
				return nil
			}
		}
	}
}

func (d *driver) Seek(topic string, points []lines.Point) ([]*lines.Record, error) {
	found := make([]*lines.Record, len(points))
	for at, point := range points {
		offset := point.Number
		if point.IsTime {
			var listed kadm.ListedOffset
			err := d.administer(func(ctx context.Context, admin *kadm.Client) error {
				all, err := admin.ListOffsetsAfterMilli(ctx, point.Number, topic)
				listed, _ = all.Lookup(topic, point.Partition)
				return errors.Join(err, listed.Err)
			})
			if err != nil {
				return nil, err
			}
			// Past the last record it gives the end, with no timestamp.
			if listed.Timestamp < 0 {
				continue
			}
			offset = listed.Offset
		}
		starts := map[int32]kgo.Offset{point.Partition: kgo.NewOffset().At(offset)}
		err := d.read(topic, starts, kgo.NoResetOffset(), func(record *lines.Record) bool {
			found[at] = record
			return true
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

func (d *driver) Reset(topic string, offset int64, policy string) (*int64, error) {
	policies := map[string]kgo.Offset{
		"earliest": kgo.NewOffset().AtStart(), "latest": kgo.NewOffset().AtEnd(), "none": kgo.NoResetOffset(),
	}
	var found *int64
	err := d.read(topic, map[int32]kgo.Offset{0: kgo.NewOffset().At(offset)}, policies[policy],
		func(record *lines.Record) bool {
			found = &record.Offset
			return true
		})
	if errors.Is(err, kerr.OffsetOutOfRange) {
		return nil, nil
	}
	return found, err
}

func (d *driver) Member(group string, topics []string, options map[string]string, log *lines.MemberLog) error {
	gone := func(_ context.Context, _ *kgo.Client, places map[string][]int32) { log.Revoked(lines.PlacesOf(places)) }
	settings := []kgo.Opt{
		kgo.ConsumerGroup(group), kgo.ConsumeTopics(topics...), kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
		kgo.SessionTimeout(session(options)), kgo.HeartbeatInterval(500 * time.Millisecond),
		// A broker that is killed before its first answer would else be taken for one that wants SASL, and the member
		// would give up its place.
		kgo.AlwaysRetryEOF(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.OnPartitionsAssigned(func(_ context.Context, client *kgo.Client, places map[string][]int32) {
			member, generation := client.GroupMetadata()
			log.Added(generation, member, lines.PlacesOf(places))
		}),
		kgo.OnPartitionsRevoked(gone), kgo.OnPartitionsLost(gone),
	}
	if instance := options["instance"]; instance != "" {
		settings = append(settings, kgo.InstanceID(instance))
	}
	if assignor := options["assignor"]; assignor != "" {
		balancer := map[string]kgo.GroupBalancer{
			"range": kgo.RangeBalancer(), "sticky": kgo.StickyBalancer(), "cooperative": kgo.CooperativeStickyBalancer(),
		}[assignor]
		settings = append(settings, kgo.Balancers(balancer))
	}
	client, err := d.open(settings...)
	if err != nil {
		return err
	}
	for !log.MustStop() {
		if err := consumeOnce(client, log); err != nil {
			return err
		}
	}
	client.Close()
	log.Left()
	return nil
}

// consumeOnce reads what there is within a tenth of a second, notes it and commits it.
func consumeOnce(client *kgo.Client, log *lines.MemberLog) error {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	fetches := client.PollRecords(ctx, 100)
	defer client.AllowRebalance()
	for _, failed := range fetches.Errors() {
		// That it looks for the group again is told as an error too.
		var session *kgo.ErrGroupSession
		var dial *net.OpError
		if errors.As(failed.Err, &session) && errors.As(failed.Err, &dial) {
			log.Unreachable(failed.Err)
		}
		if !errors.Is(failed.Err, context.DeadlineExceeded) && !errors.As(failed.Err, &session) {
			return fmt.Errorf("%s %d: %w", failed.Topic, failed.Partition, failed.Err)
		}
	}
	records := fetches.Records()
	next := map[lines.Place]int64{}
	for _, record := range records {
		log.Records(record.Topic, []*lines.Record{lineOf(record)})
		next[lines.Place{Topic: record.Topic, Partition: record.Partition}] = record.Offset + 1
	}
	if len(records) == 0 {
		return nil
	}
	commit, stop := patience()
	defer stop()
	if err := client.CommitRecords(commit, records...); err != nil {
		log.Refused(err)
		return nil
	}
	var places []lines.Place
	for place, offset := range next {
		place.Offset = offset
		places = append(places, place)
	}
	log.Committed(places)
	return nil
}

func session(options map[string]string) time.Duration {
	if text := options["session"]; text != "" {
		if ms, err := strconv.Atoi(text); err == nil {
			return time.Duration(ms) * time.Millisecond
		}
	}
	return 6 * time.Second
}

func lineOf(record *kgo.Record) *lines.Record {
	line := &lines.Record{
		Partition: record.Partition, Offset: record.Offset, Timestamp: record.Timestamp.UnixMilli(),
		Key: record.Key, Value: record.Value,
	}
	for _, header := range record.Headers {
		line.Headers = append(line.Headers, lines.Header{Name: header.Key, Value: header.Value})
	}
	return line
}
