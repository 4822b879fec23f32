// Drives sarama; called as clients/record_lines.py describes.
//
// SARAMA_VERSION, for example 2.4.0, is the release of Apache Kafka that it is told to meet; else it assumes its default.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/IBM/sarama"

	"varve.tests/clients/lines"
)

var codecs = map[string]sarama.CompressionCodec{
	"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy,
	"lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD,
}

type driver struct{ bootstrap string }

func main() {
	lines.Main(func(bootstrap string) lines.Driver { return &driver{bootstrap} })
}

func newConfig() *sarama.Config {
	config := sarama.NewConfig()
	if text := os.Getenv("SARAMA_VERSION"); text != "" {
		version, err := sarama.ParseKafkaVersion(text)
		if err != nil {
			panic(err)
		}
		config.Version = version
	}
	config.Consumer.MaxWaitTime = 100 * time.Millisecond
	config.Consumer.Return.Errors = true
	return config
}

func (d *driver) Create(topic string, partitions int32) error {
	return d.administer(func(admin sarama.ClusterAdmin) error {
		return admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: partitions, ReplicationFactor: 1}, false)
	})
}

func (d *driver) Delete(topic string) error {
	return d.administer(func(admin sarama.ClusterAdmin) error { return admin.DeleteTopic(topic) })
}

func (d *driver) administer(call func(sarama.ClusterAdmin) error) error {
	admin, err := sarama.NewClusterAdmin([]string{d.bootstrap}, newConfig())
	if err != nil {
		return err
	}
	return errors.Join(call(admin), admin.Close())
}

func (d *driver) Produce(topic, codec string, records []*lines.Record) ([]int64, error) {
	config := newConfig()
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Producer.Compression = codecs[codec]
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Return.Successes = true
	config.Producer.Flush.Frequency = 5 * time.Millisecond
	// Idempotent for one half of the codecs, so that both kinds of producer meet the broker. One request at a time:
	// else its retries may overtake each other.
	config.Producer.Idempotent = codec == "none" || codec == "lz4" || codec == "zstd"
	config.Net.MaxOpenRequests = 1
	producer, err := sarama.NewSyncProducer([]string{d.bootstrap}, config)
	if err != nil {
		return nil, err
	}
	messages := make([]*sarama.ProducerMessage, len(records))
	for at, record := range records {
		message := &sarama.ProducerMessage{
			Topic: topic, Partition: record.Partition, Timestamp: time.UnixMilli(record.Timestamp),
		}
		if record.Key != nil {
			message.Key = sarama.ByteEncoder(record.Key)
		}
		if record.Value != nil {
			message.Value = sarama.ByteEncoder(record.Value)
		}
		for _, header := range record.Headers {
			message.Headers = append(message.Headers, sarama.RecordHeader{Key: []byte(header.Name), Value: header.Value})
		}
		messages[at] = message
	}
	if err := errors.Join(producer.SendMessages(messages), producer.Close()); err != nil {
		return nil, err
	}
	offsets := make([]int64, len(messages))
	for at, message := range messages {
		offsets[at] = message.Offset
	}
	return offsets, nil
}

func (d *driver) Consume(topic string, partitions int32) ([]*lines.Record, error) {
	return reading(d, func(client sarama.Client, consumer sarama.Consumer) ([]*lines.Record, error) {
		var records []*lines.Record
		for partition := int32(0); partition < partitions; partition++ {
			end, err := client.GetOffset(topic, partition, sarama.OffsetNewest)
			if err != nil {
				return nil, err
			}
			read, err := readFrom(consumer, topic, partition, 0, end)
			if err != nil {
				return nil, err
			}
			records = append(records, read...)
		}
		return records, nil
	})
}

func (d *driver) Seek(topic string, points []lines.Point) ([]*lines.Record, error) {
	return reading(d, func(client sarama.Client, consumer sarama.Consumer) ([]*lines.Record, error) {
		found := make([]*lines.Record, len(points))
		for at, point := range points {
			offset := point.Number
			if point.IsTime {
				var err error
				if offset, err = client.GetOffset(topic, point.Partition, point.Number); err != nil {
					return nil, err
				}
				if offset < 0 {
					continue
				}
			}
			read, err := readFrom(consumer, topic, point.Partition, offset, offset+1)
			if err != nil {
				return nil, err
			}
			found[at] = read[0]
		}
		return found, nil
	})
}

// Reset does what an application does with sarama, which leaves the policy to it.
func (d *driver) Reset(topic string, offset int64, policy string) (*int64, error) {
	return reading(d, func(client sarama.Client, consumer sarama.Consumer) (*int64, error) {
		_, err := readFrom(consumer, topic, 0, offset, offset+1)
		if !errors.Is(err, sarama.ErrOffsetOutOfRange) {
			return &offset, err
		}
		if policy == "none" {
			return nil, nil
		}
		place := map[string]int64{"earliest": sarama.OffsetOldest, "latest": sarama.OffsetNewest}[policy]
		next, err := client.GetOffset(topic, 0, place)
		return &next, err
	})
}

func reading[T any](d *driver, call func(sarama.Client, sarama.Consumer) (T, error)) (T, error) {
	var nothing T
	client, err := sarama.NewClient([]string{d.bootstrap}, newConfig())
	if err != nil {
		return nothing, err
	}
	defer client.Close()
	consumer, err := sarama.NewConsumerFromClient(client)
	if err != nil {
		return nothing, err
	}
	defer consumer.Close()
	return call(client, consumer)
}

// readFrom reads the records of a partition from an offset up to, and without, another.
func readFrom(consumer sarama.Consumer, topic string, partition int32, from, end int64) ([]*lines.Record, error) {
	if from >= end {
		return nil, nil
	}
	reader, err := consumer.ConsumePartition(topic, partition, from)
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	var records []*lines.Record
	timeout := time.After(lines.Patience)
	for {
		select {
		case message := <-reader.Messages():
			records = append(records, lineOf(message))
			if message.Offset >= end-1 {
				return records, nil
			}
		case err := <-reader.Errors():
			return nil, err
		case <-timeout:
			return nil, fmt.Errorf("no record came")
		}
	}
}

func (d *driver) Member(group string, topics []string, options map[string]string, log *lines.MemberLog) error {
	config := newConfig()
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Group.Session.Timeout = 6 * time.Second
	if ms, err := strconv.Atoi(options["session"]); err == nil {
		config.Consumer.Group.Session.Timeout = time.Duration(ms) * time.Millisecond
	}
	config.Consumer.Group.Heartbeat.Interval = 500 * time.Millisecond
	config.Consumer.Group.InstanceId = options["instance"]
	if assignor := options["assignor"]; assignor != "" {
		strategy := map[string]sarama.BalanceStrategy{
			"range": sarama.NewBalanceStrategyRange(), "sticky": sarama.NewBalanceStrategySticky(),
		}[assignor]
		config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{strategy}
	}
	consumer, err := sarama.NewConsumerGroup([]string{d.bootstrap}, group, config)
	if err != nil {
		return err
	}
	go func() {
		for range consumer.Errors() { // Of fetches and commits alike; it tries again by itself.
		}
	}()
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		for !log.MustStop() {
			time.Sleep(50 * time.Millisecond)
		}
		cancel()
	}()
	for ctx.Err() == nil {
		// It comes back at each rebalance, and when the broker is gone for a while.
		if err := consumer.Consume(ctx, topics, &handler{log}); err != nil {
			time.Sleep(100 * time.Millisecond)
		}
	}
	err = consumer.Close()
	log.Left()
	return err
}

type handler struct{ log *lines.MemberLog }

func (h *handler) Setup(session sarama.ConsumerGroupSession) error {
	h.log.Assigned(session.GenerationID(), session.MemberID(), lines.PlacesOf(session.Claims()))
	return nil
}

func (h *handler) Cleanup(session sarama.ConsumerGroupSession) error {
	h.log.Revoked(lines.PlacesOf(session.Claims()))
	return nil
}

func (h *handler) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		h.log.Records(message.Topic, []*lines.Record{lineOf(message)})
		session.MarkMessage(message, "")
		// It says nothing of its outcome.
		if len(claim.Messages()) == 0 {
			session.Commit()
		}
	}
	return nil
}

func lineOf(message *sarama.ConsumerMessage) *lines.Record {
	line := &lines.Record{
		Partition: message.Partition, Offset: message.Offset, Timestamp: message.Timestamp.UnixMilli(),
		Key: message.Key, Value: message.Value,
	}
	for _, header := range message.Headers {
		line.Headers = append(line.Headers, lines.Header{Name: string(header.Key), Value: header.Value})
	}
	return line
}
