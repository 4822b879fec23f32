package lines

import (
	"bufio"
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"
	"time"
)

// Place is a partition of a topic, and where one is meant, an offset in it.
type Place struct {
	Topic     string
	Partition int32
	Offset    int64
}

// PlacesOf gives the partitions of each topic, as clients list them.
func PlacesOf(partitions map[string][]int32) []Place {
	var places []Place
	for topic, indexes := range partitions {
		for _, partition := range indexes {
			places = append(places, Place{Topic: topic, Partition: partition})
		}
	}
	return places
}

// MemberLog writes the lines of a member step, each to the file at once. Any goroutine may call it.
type MemberLog struct {
	mutex sync.Mutex
	file  *os.File
	stop  string
	owned map[Place]bool
}

func openMemberLog(path string) (*MemberLog, error) {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	return &MemberLog{file: file, stop: path + ".stop", owned: map[Place]bool{}}, err
}

// MustStop says whether the member has been told to leave.
func (log *MemberLog) MustStop() bool {
	_, err := os.Stat(log.stop)
	return err == nil
}

// Assigned notes all partitions that the member has now.
func (log *MemberLog) Assigned(generation int32, member string, places []Place) {
	log.mutex.Lock()
	log.owned = map[Place]bool{}
	log.mutex.Unlock()
	log.Added(generation, member, places)
}

// Added notes the partitions that came to those which the member has.
func (log *MemberLog) Added(generation int32, member string, places []Place) {
	log.mutex.Lock()
	defer log.mutex.Unlock()
	for _, place := range places {
		log.owned[place] = true
	}
	var all []Place
	for place := range log.owned {
		all = append(all, place)
	}
	log.write("assigned", fmt.Sprint(generation), member, texts(all, false))
}

// Revoked notes the partitions that the member has no more.
func (log *MemberLog) Revoked(places []Place) {
	log.mutex.Lock()
	defer log.mutex.Unlock()
	for _, place := range places {
		delete(log.owned, place)
	}
	log.write("revoked", texts(places, false))
}

// Records notes what was read of a topic.
func (log *MemberLog) Records(topic string, records []*Record) {
	log.mutex.Lock()
	defer log.mutex.Unlock()
	out := bufio.NewWriter(log.file)
	for _, record := range records {
		fmt.Fprintf(out, "%d\trecord\t%s\t%s\n", time.Now().UnixMilli(), topic, record)
	}
	fail(out.Flush())
}

// Committed notes offsets that the broker said it has.
func (log *MemberLog) Committed(places []Place) {
	log.mutex.Lock()
	defer log.mutex.Unlock()
	log.write("committed", texts(places, true))
}

// Refused notes a commit that failed.
func (log *MemberLog) Refused(err error) {
	log.mutex.Lock()
	defer log.mutex.Unlock()
	log.write("refused", strings.Join(strings.Fields(err.Error()), " "))
}

// Unreachable notes that the client gave up its place in the group, since nobody answered.
func (log *MemberLog) Unreachable(err error) {
	log.mutex.Lock()
	defer log.mutex.Unlock()
	log.write("unreachable", strings.Join(strings.Fields(err.Error()), " "))
}

// Left notes that the member has left the group.
func (log *MemberLog) Left() {
	log.mutex.Lock()
	defer log.mutex.Unlock()
	log.write("left")
}

func (log *MemberLog) write(fields ...string) {
	_, err := fmt.Fprintf(log.file, "%d\t%s\n", time.Now().UnixMilli(), strings.Join(fields, "\t"))
	fail(err)
}

func texts(places []Place, withOffset bool) string {
	var found []string
	for _, place := range places {
		text := fmt.Sprintf("%s:%d", place.Topic, place.Partition)
		if withOffset {
			text += fmt.Sprintf(":%d", place.Offset)
		}
		found = append(found, text)
	}
	sort.Strings(found)
	return strings.Join(found, ",")
}
