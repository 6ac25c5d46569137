package schemaregistry

import (
	"fmt"
	"slices"
)

// Subjects are named after the topic, the record, or both.
var strategies = []string{"topic", "record", "topic-record"}

// subject is the name that a strategy gives to the schema of a topic's values. Cloudera's registry has no other than the topic's.
func subject(strategy, topic, record string, cloudera bool) (string, error) {
	switch {
	case cloudera && (strategy == "" || strategy == "topic"):
		return topic, nil
	case strategy == "" || strategy == "topic":
		return topic + "-value", nil
	case !slices.Contains(strategies, strategy):
		return "", fmt.Errorf("the strategy %q is not one of topic, record and topic-record", strategy)
	case record == "":
		return "", fmt.Errorf("the strategy %s needs the name of the record: give the schema, or name the subject", strategy)
	case strategy == "record":
		return record, nil
	}
	return topic + "-" + record, nil
}

// SubjectOf is what registries of a kind, "confluent" or "cloudera", call the schemas of a topic's values if nobody says otherwise.
func SubjectOf(topic, kind string) string {
	name, _ := subject("", topic, "", kind == "cloudera") // this strategy needs no more
	return name
}
