// Package lines is the Go side of clients/record_lines.py, which says what the files and steps are.
package lines

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Patience is how long a driver waits for anything before it gives up.
const Patience = 60 * time.Second

// Header is a record's header; a nil Value is null.
type Header struct {
	Name  string
	Value []byte
}

// Record is one record; a nil Key or Value is null.
type Record struct {
	Partition int32
	Offset    int64
	Timestamp int64
	Key       []byte
	Value     []byte
	Headers   []Header
}

// Point says where to read one record: at an offset, or at or after a time.
type Point struct {
	Partition int32
	IsTime    bool
	Number    int64
}

// Driver does the steps with one client.
type Driver interface {
	Create(topic string, partitions int32) error
	Delete(topic string) error
	// Produce gives the offsets of the records, in their order.
	Produce(topic, codec string, records []*Record) ([]int64, error)
	Consume(topic string, partitions int32) ([]*Record, error)
	// Seek gives a record for each point, nil where there is none.
	Seek(topic string, points []Point) ([]*Record, error)
	// Reset gives the offset at which a reader goes on, or nil if it is told an error.
	Reset(topic string, offset int64, policy string) (*int64, error)
	Member(group string, topics []string, options map[string]string, log *MemberLog) error
}

// Main runs the steps of the file that the command line names, and ends the process.
func Main(open func(bootstrap string) Driver) {
	if len(os.Args) != 3 {
		fail(fmt.Errorf("wants the broker's address and a file of steps"))
	}
	text, err := os.ReadFile(os.Args[2])
	fail(err)
	driver := open(os.Args[1])
	for _, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		if err := run(driver, strings.Split(line, "\t")); err != nil {
			fail(fmt.Errorf("%s: %w", line, err))
		}
	}
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(driver Driver, step []string) error {
	switch step[0] {
	case "create":
		return driver.Create(step[1], int32(number(step[2])))
	case "delete":
		return driver.Delete(step[1])
	case "produce":
		records := read(step[3])
		offsets, err := driver.Produce(step[1], step[2], records)
		if err != nil {
			return err
		}
		for at, offset := range offsets {
			records[at].Offset = offset
		}
		return write(step[4], records)
	case "consume":
		records, err := driver.Consume(step[1], int32(number(step[2])))
		if err != nil {
			return err
		}
		return write(step[3], records)
	case "seek":
		records, err := driver.Seek(step[1], points(step[2]))
		if err != nil {
			return err
		}
		return write(step[3], records)
	case "reset":
		offset, err := driver.Reset(step[1], number(step[2]), step[3])
		if err != nil || offset == nil {
			return first(err, write(step[4], []*Record{nil}))
		}
		return write(step[4], []*Record{{Offset: *offset}})
	case "member":
		log, err := openMemberLog(step[4])
		if err != nil {
			return err
		}
		return driver.Member(step[1], strings.Split(step[2], ","), options(step[3]), log)
	}
	return fmt.Errorf("unknown step")
}

func first(errors ...error) error {
	for _, err := range errors {
		if err != nil {
			return err
		}
	}
	return nil
}

// number reads what the harness wrote.
func number(text string) int64 {
	value, err := strconv.ParseInt(text, 10, 64)
	fail(err)
	return value
}

func options(text string) map[string]string {
	found := map[string]string{}
	for _, option := range strings.Split(text, ",") {
		if name, value, ok := strings.Cut(option, "="); ok {
			found[name] = value
		}
	}
	return found
}

func points(path string) []Point {
	var found []Point
	for _, line := range fileLines(path) {
		fields := strings.Split(line, "\t")
		found = append(found, Point{int32(number(fields[0])), fields[1] == "time", number(fields[2])})
	}
	return found
}

func read(path string) []*Record {
	var records []*Record
	for _, line := range fileLines(path) {
		records = append(records, parse(line))
	}
	return records
}

func fileLines(path string) []string {
	text, err := os.ReadFile(path)
	fail(err)
	if len(text) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

func write(path string, records []*Record) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(file)
	for _, record := range records {
		fmt.Fprintln(out, record)
	}
	return first(out.Flush(), file.Close())
}

func parse(line string) *Record {
	fields := strings.Split(line, "\t")
	record := &Record{
		Partition: int32(number(fields[0])), Offset: number(fields[1]), Timestamp: number(fields[2]),
		Key: decode(fields[3]), Value: decode(fields[4]),
	}
	for _, pair := range strings.Split(fields[5], ",") {
		if name, value, ok := strings.Cut(pair, ":"); ok {
			record.Headers = append(record.Headers, Header{string(decode(name)), decode(value)})
		}
	}
	return record
}

// String is the line of the record in a file.
func (record *Record) String() string {
	if record == nil {
		return "-"
	}
	var headers []string
	for _, header := range record.Headers {
		headers = append(headers, encode([]byte(header.Name))+":"+encode(header.Value))
	}
	return fmt.Sprintf("%d\t%d\t%d\t%s\t%s\t%s", record.Partition, record.Offset, record.Timestamp,
		encode(record.Key), encode(record.Value), strings.Join(headers, ","))
}

func encode(data []byte) string {
	if data == nil {
		return "-"
	}
	return base64.StdEncoding.EncodeToString(data)
}

func decode(text string) []byte {
	if text == "-" {
		return nil
	}
	data, err := base64.StdEncoding.DecodeString(text)
	fail(err)
	return data
}
