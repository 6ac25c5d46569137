package jobspec

import (
	"reflect"

	"github.com/heddle-stream/heddle/internal/jobspec/strict"
)

// The types of this file are the language: what a file may say, field by field. The decoder, the JSON Schema
// and the reference in docs/yaml-jobs.md follow them.

// jobFile is a whole file.
type jobFile struct {
	strict.At
	Name           strict.String          `yaml:"name,required" doc:"Name of the job, shown to people and in YARN. At most 256 bytes; names of sources, steps and sinks: 224."`
	Parallelism    strict.Int             `yaml:"parallelism" min:"1" doc:"Subtasks of each operator that sets none itself; by default the option parallelism."`
	MaxParallelism strict.Int             `yaml:"max_parallelism" min:"1" doc:"Number of key groups: the most the job can be scaled to. By default the option max-parallelism."`
	Timezone       strict.String          `yaml:"timezone" doc:"IANA name such as Europe/Berlin: where times without a zone are read, days begin, and times are written. By default the option timezone."`
	SlotGroups     *strict.Map[slotGroup] `yaml:"slot_groups" doc:"What each slot of a slot sharing group must have. Sources, steps and sinks name their group with slot_group; default is that of all others."`
	Source         *source                `yaml:"source" one:"source" doc:"The job's only source; its stream is called source."`
	Sources        *strict.Map[source]    `yaml:"sources" one:"source" doc:"Several sources by name; steps and sinks refer to them with from."`
	Steps          []step                 `yaml:"steps" doc:"What is done to the records, in order. A step reads the step before it, unless it has from."`
	Sink           *sink                  `yaml:"sink" one:"sink" doc:"The job's only sink; it reads the last step, unless it has from."`
	Sinks          *strict.Map[sink]      `yaml:"sinks" one:"sink" doc:"Several sinks by name; each says with from what it reads, unless steps send it late records or dead letters."`
}

// slotGroup is what each slot of a slot sharing group must have.
type slotGroup struct {
	strict.At
	CPU       strict.Text             `yaml:"cpu" doc:"Cores, such as 0.5."`
	Memory    strict.Text             `yaml:"memory" doc:"Memory, such as 512MiB or 2GiB."`
	Resources *strict.Map[strict.Int] `yaml:"resources" doc:"Amounts of other resources that agents have by the option agent.resources, such as {gpu: 1}."`
}

// source is where records come from.
type source struct {
	strict.At
	Kafka       *kafkaSource               `yaml:"kafka" one:"connector" doc:"Reads Kafka topics."`
	File        *fileSource                `yaml:"file" one:"connector" doc:"Reads the lines of files."`
	Generator   *generator                 `yaml:"generator" one:"connector" doc:"Makes records by expressions."`
	Fields      *strict.Map[strict.String] `yaml:"fields" values:"any|string|int|float|bool|time|list|object" doc:"Names and types of the fields (string, int, float, bool, time, list, object, any). Every field may be null. Without it, json fields are of type any."`
	EventTime   *eventTime                 `yaml:"event_time" doc:"Column that holds when the record happened. It gives the stream its event time and watermarks."`
	MaxDelay    strict.Duration            `yaml:"max_delay" doc:"How late a record may come behind the newest one; a record later than that is late. Default 0s."`
	IdleAfter   strict.Duration            `yaml:"idle_after" positive:"" doc:"A partition or file that gives nothing for so long holds back no watermark."`
	MaxDrift    strict.Duration            `yaml:"max_drift" positive:"" doc:"How far in event time a partition may be ahead of the slowest of the source, in all its subtasks, before it is not read for a while. Those that are idle, have ended or had no record are not waited for."`
	Align       strict.String              `yaml:"align" doc:"With max_drift: the name of a group. Sources of the same group wait for each other, not each for itself alone."`
	OnError     *onError                   `yaml:"on_error" doc:"What becomes of a message that can't be read: fail (the default), skip, or {dead_letter: sink}."`
	UID         strict.String              `yaml:"uid" doc:"Identity that stays when the job changes; unique in the job."`
	Parallelism strict.Int                 `yaml:"parallelism" min:"1" doc:"Subtasks that read."`
	SlotGroup   strict.String              `yaml:"slot_group" doc:"Slot sharing group: its subtasks never share a slot with those of other groups. By default the group default."`
}

// kafkaSource reads topics.
type kafkaSource struct {
	strict.At
	Topics         []strict.String            `yaml:"topics" one:"topics" doc:"Topics to read; each must exist."`
	Pattern        strict.String              `yaml:"pattern" one:"topics" doc:"Regular expression that a topic's whole name must match; topics found later are read too."`
	Partitions     *strict.Map[partitionList] `yaml:"partitions" one:"topics" doc:"Topics and the partitions of each to read, such as {clicks: [0, 2]}; each must exist."`
	Exclude        strict.String              `yaml:"exclude" doc:"With pattern: topics whose name matches this are left out."`
	Brokers        []strict.String            `yaml:"brokers" doc:"host:port of brokers to begin with; by default the option kafka.brokers."`
	Format         sourceFormat               `yaml:"format,required" doc:"Format of a message's value: json, csv, text, raw, or, with a schema registry (options schema-registry.*), avro or protobuf."`
	Start          *kafkaPosition             `yaml:"start" doc:"Where reading begins: earliest (the default), latest, {timestamp: …}, {offsets: {topic: {partition: offset}}} or {committed: group}."`
	Stop           *kafkaStop                 `yaml:"stop" doc:"Where reading ends: never (the default), latest, {timestamp: …}, {offsets: …} or {committed: group}. A job whose sources all end finishes."`
	Discovery      strict.Duration            `yaml:"discovery_interval" positive:"" doc:"How often new partitions and topics are looked for; by default the option kafka.discovery-interval."`
	Assign         strict.String              `yaml:"assign" enum:"topic|global" doc:"How partitions are given to subtasks: topic (the default) spreads each topic by itself, global spreads all topics together, which is evener for many small ones."`
	Isolation      strict.String              `yaml:"isolation" enum:"committed|uncommitted" doc:"committed (the default): records of transactions that are not committed are left out. uncommitted: they are read."`
	OnDataLoss     strict.String              `yaml:"on_data_loss" enum:"fail|earliest|latest" doc:"What to do when the offset to be read is not there any more: fail (the default), or go on at the earliest or latest record there is, with a warning and a count."`
	RateLimit      strict.Int                 `yaml:"rate_limit" min:"0" doc:"Most records a second to read of each partition, 0 for no bound; by default the option kafka.rate-limit."`
	CommitTo       strict.String              `yaml:"commit_to" doc:"Consumer group to commit offsets to: of records that have left every sink."`
	CommitInterval strict.Duration            `yaml:"commit_interval" positive:"" doc:"With commit_to: how often; by default the option kafka.commit-interval."`
}

// partitionList is partitions of a topic.
type partitionList struct {
	strict.At
	Numbers []strict.Int `alt:"list"`
}

// kafkaPosition is where reading begins.
type kafkaPosition struct {
	strict.At
	Symbol strict.String `alt:"scalar" enum:"earliest|latest"`
	Point  *kafkaPoint   `alt:"map"`
}

// kafkaStop is where reading ends.
type kafkaStop struct {
	strict.At
	Symbol strict.String `alt:"scalar" enum:"never|latest"`
	Point  *kafkaPoint   `alt:"map"`
}

// kafkaPoint is a position in each partition.
type kafkaPoint struct {
	strict.At
	Timestamp strict.String                       `yaml:"timestamp" one:"point" doc:"Time such as 2026-03-01T00:00:00Z: the first record of that time or later, in each partition."`
	Offsets   *strict.Map[strict.Map[strict.Int]] `yaml:"offsets" one:"point" doc:"For each topic the offset in each partition, such as {clicks: {0: 42}}."`
	Committed strict.String                       `yaml:"committed" one:"point" doc:"Consumer group: what it has committed."`
	Otherwise strict.String                       `yaml:"otherwise" enum:"earliest|latest" doc:"With committed: where partitions begin or end of which the group has committed nothing; without it they are an error."`
}

// fileSource reads files.
type fileSource struct {
	strict.At
	Path   strict.String `yaml:"path,required" doc:"Path of a file or folder, or a pattern such as /data/*.json; on the hosts of the agents, or in HDFS: hdfs:///data/*.json."`
	Format sourceFormat  `yaml:"format,required" doc:"Format of a line: json, csv, text or raw."`
}

// generator makes records.
type generator struct {
	strict.At
	Count  strict.Int              `yaml:"count" min:"1" doc:"Records in all; without it the source never ends."`
	Rate   strict.Int              `yaml:"rate" min:"1" doc:"Records a second over all subtasks; as many as possible without it."`
	Record strict.Map[strict.Text] `yaml:"record,required" doc:"Columns and the expressions that make them of n, the number of the record from 0."`
}

// sourceFormat is the format that records are read by.
type sourceFormat struct {
	strict.At
	Name    strict.String        `alt:"scalar" enum:"json|csv|text|raw|avro|protobuf"`
	Options *sourceFormatOptions `alt:"map"`
}

// sourceFormatOptions is a format with options.
type sourceFormatOptions struct {
	strict.At
	CSV *csvRead `yaml:"csv" one:"format" doc:"Comma-separated values, quoted as in RFC 4180."`
}

// csvRead are the options of reading CSV.
type csvRead struct {
	strict.At
	Columns   []strict.String `yaml:"columns" doc:"Names of a line's columns in their order; an empty name leaves a column out. By default the fields in their order."`
	Delimiter strict.String   `yaml:"delimiter" doc:"The one character between columns; a comma by default."`
	Header    strict.Bool     `yaml:"header" doc:"true: the first line of each file holds names, and is left out, though it counts as a record that was read."`
}

// csvFormat are the options of writing CSV.
type csvFormat struct {
	strict.At
	Columns   []strict.String `yaml:"columns" doc:"Columns in the order of the line; by default all."`
	Delimiter strict.String   `yaml:"delimiter" doc:"The one character between fields; a comma by default."`
}

// eventTime says when a record happened.
type eventTime struct {
	strict.At
	Column strict.String    `alt:"scalar"`
	Detail *eventTimeDetail `alt:"map"`
}

// eventTimeDetail is a column and the unit of its numbers.
type eventTimeDetail struct {
	strict.At
	Column strict.String `yaml:"column,required" doc:"The column: a time, a string such as 2026-03-01T12:00:00Z, or a number since the Unix epoch."`
	Unit   strict.String `yaml:"unit" enum:"s|ms|us|ns" doc:"Unit of a number: s, ms (the default), us or ns."`
}

// step is one thing done to the records of a stream.
type step struct {
	strict.At
	Filter  *strict.Text             `yaml:"filter" one:"step" doc:"Keeps the records for which the expression is true; null counts as false."`
	Set     *strict.Map[strict.Text] `yaml:"set" one:"step" doc:"Sets columns, new or old, to expressions; each sees the record as it came in."`
	Keep    []strict.String          `yaml:"keep" one:"step" doc:"Keeps only these columns, in this order."`
	Drop    []strict.String          `yaml:"drop" one:"step" doc:"Drops these columns."`
	FlatMap *strict.Map[strict.Text] `yaml:"flat_map" one:"step" doc:"Column and expression that gives a list: one record for each of its elements, the other columns as they were. An empty list or null gives none."`
	KeyBy   *keyBy                   `yaml:"key_by" one:"step" doc:"Brings records of equal key together for the next step, a window or dedupe: a column, a list of columns, or a map of names and expressions."`
	Window  *window                  `yaml:"window" one:"step" doc:"Groups the records of each key by time and aggregates them. Its records have the key's columns, window_start and window_end (not global), and the aggregates."`
	Dedupe  *dedupe                  `yaml:"dedupe" one:"step" doc:"Passes on the first of equal records and drops the others."`
	Union   []strict.String          `yaml:"union" one:"step" doc:"Unites the streams named, two or more. A column that one of them lacks is null in its records."`
	Route   *strict.Map[strict.Text] `yaml:"route" one:"step" doc:"Names of branches and conditions: a record goes to the first branch whose condition is true, or nowhere. Steps and sinks read a branch with from."`

	From        strict.String `yaml:"from" doc:"What the step reads: a source, a branch of a route, or the name of a step above. By default the step before."`
	Name        strict.String `yaml:"name" doc:"Name of the step, for from, plans and metrics. At most 224 bytes."`
	UID         strict.String `yaml:"uid" doc:"Identity that stays when the job changes; unique in the job."`
	Parallelism strict.Int    `yaml:"parallelism" min:"1" doc:"Subtasks of the step."`
	SlotGroup   strict.String `yaml:"slot_group" doc:"Slot sharing group: its subtasks never share a slot with those of other groups. By default that of what it reads."`
	OnError     *onError      `yaml:"on_error" doc:"What becomes of a record for which an expression fails: fail (the default), skip, or {dead_letter: sink}."`
}

// keyBy is what makes a key.
type keyBy struct {
	strict.At
	Column  strict.Text              `alt:"scalar" doc:"A column, or an expression, whose column is then called key."`
	Columns []strict.String          `alt:"list" doc:"Columns."`
	Exprs   *strict.Map[strict.Text] `alt:"map" doc:"Names and expressions."`
}

// window is how records are grouped by time, and what is kept of them.
type window struct {
	strict.At
	Tumbling  strict.Duration         `yaml:"tumbling" one:"window" positive:"" doc:"Windows of this size, one after the other. 1d is a calendar day where a time zone is set."`
	Sliding   strict.Duration         `yaml:"sliding" one:"window" positive:"" doc:"Windows of this size that begin every slide."`
	Session   strict.Duration         `yaml:"session" one:"window" positive:"" doc:"Windows that end when nothing comes for this gap."`
	Calendar  strict.String           `yaml:"calendar" one:"window" enum:"day|week|month|quarter|year" doc:"Windows of the calendar in the time zone: a day has 23, 24 or 25 hours, a week begins on Monday."`
	Global    *strict.Bool            `yaml:"global" one:"window" doc:"true: one window for each key, which ends with the input."`
	Slide     strict.Duration         `yaml:"slide" positive:"" doc:"With sliding: how often a window begins."`
	Offset    strict.Duration         `yaml:"offset" doc:"Shifts where tumbling and sliding windows begin, against the Unix epoch."`
	Timezone  strict.String           `yaml:"timezone" doc:"Time zone of the calendar; by default the job's."`
	Time      strict.String           `yaml:"time" enum:"event|processing" doc:"event (the default): when records happened, by the source's event_time. processing: when they are processed."`
	Lateness  strict.Duration         `yaml:"lateness" doc:"How long after its end a window still takes late records, and is emitted again with them."`
	Late      strict.String           `yaml:"late" doc:"Sink for records that come too late; without it they are dropped and counted."`
	Aggregate strict.Map[strict.Text] `yaml:"aggregate,required" doc:"Columns and how they are aggregated: count(), count(x), distinct(x), sum(x), min(x), max(x), avg(x), first(x), last(x), of an expression x. Nulls are left out."`
}

// dedupe is what makes records equal, and for how long.
type dedupe struct {
	strict.At
	By     []strict.String `yaml:"by" doc:"Columns that make records equal; by default the key of the key_by before."`
	Within strict.Duration `yaml:"within,required" positive:"" doc:"How long a record is remembered after it was first seen, in event time where the stream has it."`
}

// onError says what becomes of a record that fails.
type onError struct {
	strict.At
	Policy strict.String `alt:"scalar" enum:"fail|skip"`
	Detail *deadLetter   `alt:"map"`
}

// deadLetter sends failed records to a sink.
type deadLetter struct {
	strict.At
	Sink strict.String `yaml:"dead_letter,required" doc:"Sink for failed records, with the columns step, error and record."`
}

// sink is where records go.
type sink struct {
	strict.At
	Kafka       *kafkaSink    `yaml:"kafka" one:"connector" doc:"Writes to a Kafka topic."`
	File        *fileSink     `yaml:"file" one:"connector" doc:"Writes lines to files, one file a subtask."`
	Stdout      *stdoutSink   `yaml:"stdout" one:"connector" doc:"Prints to the standard output of the job."`
	Discard     *discardSink  `yaml:"discard" one:"connector" doc:"Throws records away: {}."`
	From        strict.String `yaml:"from" doc:"What the sink reads: a source, a branch of a route, or the name of a step."`
	UID         strict.String `yaml:"uid" doc:"Identity that stays when the job changes; unique in the job."`
	Parallelism strict.Int    `yaml:"parallelism" min:"1" doc:"Subtasks that write."`
	SlotGroup   strict.String `yaml:"slot_group" doc:"Slot sharing group: its subtasks never share a slot with those of other groups. By default that of what it reads."`
}

// kafkaSink writes to a topic.
type kafkaSink struct {
	strict.At
	Topic           strict.String              `yaml:"topic,required" doc:"Topic to write to."`
	Brokers         []strict.String            `yaml:"brokers" doc:"host:port of brokers to begin with; by default the option kafka.brokers."`
	Format          sinkFormat                 `yaml:"format,required" doc:"Format of a message's value: json, csv, text, raw, or, with a schema registry (options schema-registry.*), avro or protobuf."`
	Key             strict.String              `yaml:"key" doc:"Column that becomes the message's key, as text; none by default."`
	Headers         *strict.Map[strict.String] `yaml:"headers" doc:"Names of headers and the columns that they hold, as text; of a column that is null there is none."`
	Compression     strict.String              `yaml:"compression" enum:"none|gzip|snappy|lz4|zstd" doc:"How batches are packed; none by default."`
	BatchBytes      strict.Int                 `yaml:"batch_bytes" min:"1" doc:"Most bytes of a batch before compression, unless one record is larger; 262144 by default."`
	Linger          strict.Duration            `yaml:"linger" positive:"" doc:"How long a batch waits for more records; 10ms by default."`
	MaxMessageBytes strict.Int                 `yaml:"max_message_bytes" min:"1" doc:"Most bytes of a message, and of a batch before compression; 1000000 by default. The topic's max.message.bytes must allow it."`
}

// fileSink writes files.
type fileSink struct {
	strict.At
	Path      strict.String `yaml:"path,required" doc:"Folder that gets one file for each subtask; on the hosts of the agents, or in HDFS: hdfs:///data/out."`
	Format    sinkFormat    `yaml:"format,required" doc:"Format of a line: json, csv, text or raw."`
	Overwrite strict.Bool   `yaml:"overwrite" doc:"true: files of an earlier run are replaced; without it they are an error."`
}

// stdoutSink prints.
type stdoutSink struct {
	strict.At
	Format *sinkFormat `yaml:"format" doc:"Format of a line: json (the default), csv, text or raw."`
}

// discardSink has no options.
type discardSink struct{ strict.At }

// sinkFormat is the format that records are written by.
type sinkFormat struct {
	strict.At
	Name    strict.String      `alt:"scalar" enum:"json|csv|text|raw|avro|protobuf"`
	Options *sinkFormatOptions `alt:"map"`
}

// sinkFormatOptions is a format with options.
type sinkFormatOptions struct {
	strict.At
	CSV      *csvFormat    `yaml:"csv" one:"format" doc:"Comma-separated values, quoted as in RFC 4180, without a header."`
	Avro     *schemaFormat `yaml:"avro" one:"format" doc:"Avro, framed for a schema registry."`
	Protobuf *schemaFormat `yaml:"protobuf" one:"format" doc:"Protobuf, framed for a schema registry."`
	Text     strict.String `yaml:"text" one:"format" doc:"A line with columns in braces, such as \"{word} {count}\"; {{ and }} stand for braces."`
}

// schemaFormat says by which schema records are written.
type schemaFormat struct {
	strict.At
	Schema     strict.String `yaml:"schema" doc:"Text of the schema. Without it (and schema_file) it is the newest of the subject."`
	SchemaFile strict.String `yaml:"schema_file" doc:"File that holds the schema, beside the job file; it goes along with the job."`
	Subject    strict.String `yaml:"subject" doc:"Subject of the schema; by default what strategy says."`
	Strategy   strict.String `yaml:"strategy" enum:"topic|record|topic-record" doc:"How the subject is named: topic (the default) clicks-value (with Cloudera's registry: clicks), record shop.Click, topic-record clicks-shop.Click."`
	Message    strict.String `yaml:"message" doc:"protobuf: full name of the message in the schema, such as shop.Click; by default its first."`
	Register   strict.Bool   `yaml:"register" doc:"true (the default): the schema is registered if the subject does not have it. false: the subject must have it."`
}

// Schema returns the JSON Schema (draft 2020-12) of job files, for editors.
func Schema() []byte {
	return strict.Schema(reflect.TypeFor[jobFile](), "Heddle job")
}
