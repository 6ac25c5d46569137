package bench;

import java.io.OutputStream;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.legacy.RichSinkFunction;
import org.apache.flink.streaming.api.functions.source.legacy.RichParallelSourceFunction;

/** Rate-limited sources, keyBy, reduce and sinks that tell who measures when they open and get their first record: host port parallelism rate. */
public class StartJob {
    public static void main(String[] a) throws Exception {
        String host = a[0];
        int port = Integer.parseInt(a[1]);
        tell(host, port, "main");
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.setParallelism(Integer.parseInt(a[2]));
        env.addSource(new Numbers(Integer.parseInt(a[3])), "numbers", Types.LONG)
                .keyBy(n -> n % 1000)
                .reduce((x, y) -> x + y)
                .addSink(new First(host, port));
        env.execute("start");
    }

    static void tell(String host, int port, String what) {
        try (Socket s = new Socket(host, port)) {
            OutputStream out = s.getOutputStream();
            out.write((what + "\n").getBytes(StandardCharsets.UTF_8));
            out.flush();
        } catch (java.io.IOException e) {
            throw new RuntimeException(e);
        }
    }

    /** So many numbers a second. */
    static class Numbers extends RichParallelSourceFunction<Long> {
        private final int rate;
        private volatile boolean running = true;

        Numbers(int rate) {
            this.rate = rate;
        }

        @Override
        public void run(SourceContext<Long> ctx) throws Exception {
            long begin = System.nanoTime();
            for (long n = 0; running; n++) {
                long due = begin + n * 1_000_000_000L / rate - System.nanoTime();
                if (due > 0) Thread.sleep(due / 1_000_000, (int) (due % 1_000_000));
                synchronized (ctx.getCheckpointLock()) {
                    ctx.collect(n);
                }
            }
        }

        @Override
        public void cancel() {
            running = false;
        }
    }

    /** Tells when it opens, and of its first record. */
    static class First extends RichSinkFunction<Long> {
        private final String host;
        private final int port;
        private transient boolean had;

        First(String host, int port) {
            this.host = host;
            this.port = port;
        }

        @Override
        public void open(OpenContext c) {
            tell(host, port, "open");
        }

        @Override
        public void invoke(Long n, Context c) {
            if (!had) {
                had = true;
                tell(host, port, "first");
            }
        }
    }
}
