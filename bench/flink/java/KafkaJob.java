package bench;

import java.io.RandomAccessFile;
import java.nio.ByteOrder;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.util.Map;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.legacy.RichSinkFunction;
import org.apache.flink.util.Collector;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/** Reads a topic to where it ends now, into a chained sink that counts. */
public class KafkaJob {
    public static void main(String[] argv) throws Exception {
        Map<String, String> a = ShuffleJob.args(argv);
        StreamExecutionEnvironment env = StreamExecutionEnvironment.createRemoteEnvironment("127.0.0.1", Integer.parseInt(a.get("port")), new Configuration());
        env.setParallelism(1);
        env.getConfig().enableObjectReuse();
        KafkaSource<byte[]> source = KafkaSource.<byte[]>builder()
                .setBootstrapServers(a.get("brokers")).setTopics(a.get("topic"))
                .setStartingOffsets(OffsetsInitializer.earliest()).setBounded(OffsetsInitializer.latest())
                .setDeserializer(new Values()).build();
        env.fromSource(source, WatermarkStrategy.noWatermarks(), "kafka").addSink(new Counting(a.get("counter"))).name("count");
        env.execute("kafka");
        System.exit(0);
    }

    /** Takes the value as it is. */
    public static class Values implements KafkaRecordDeserializationSchema<byte[]> {
        @Override
        public void deserialize(ConsumerRecord<byte[], byte[]> record, Collector<byte[]> out) {
            out.collect(record.value());
        }

        @Override
        public TypeInformation<byte[]> getProducedType() {
            return PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO;
        }
    }

    /** Writes into a file: records, bytes, and by the monotonic clock when the first and the last record came. */
    public static class Counting extends RichSinkFunction<byte[]> {
        private final String file;
        private transient MappedByteBuffer out;
        private transient long records;
        private transient long bytes;

        Counting(String file) {
            this.file = file;
        }

        @Override
        public void open(OpenContext context) throws Exception {
            try (RandomAccessFile f = new RandomAccessFile(file, "rw")) {
                out = f.getChannel().map(FileChannel.MapMode.READ_WRITE, 0, 4096);
            }
            out.order(ByteOrder.LITTLE_ENDIAN);
        }

        @Override
        public void invoke(byte[] value, Context context) {
            bytes += value.length;
            if (records++ == 0) {
                out.putLong(16, System.nanoTime());
                tell();
            } else if (records % 256 == 0) {
                tell();
            }
        }

        @Override
        public void close() {
            if (records % 256 != 0) {
                tell();
            }
        }

        private void tell() {
            out.putLong(24, System.nanoTime());
            out.putLong(8, bytes);
            out.putLong(0, records);
        }
    }
}
