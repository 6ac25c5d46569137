import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/** Bench DIR SECONDS MEGABYTES: what Hadoop's own client does in a second, a figure a line. */
public class Bench {
  static FileSystem fs;
  static Path file;

  public static void main(String[] args) throws Exception {
    fs = FileSystem.get(new Configuration());
    file = new Path(args[0], "java");
    long nanos = Long.parseLong(args[1]) * 1_000_000_000L;
    long bytes = Long.parseLong(args[2]) << 20;
    write(8 << 20);
    calls(8, nanos); // the compiler's turn
    System.out.println("rpc1 " + calls(1, nanos));
    System.out.println("rpc8 " + calls(8, nanos));
    write(bytes);
    read(bytes);
    System.out.println("write " + write(bytes));
    System.out.println("read " + read(bytes));
  }

  static double calls(int threads, long nanos) throws Exception {
    AtomicLong done = new AtomicLong();
    long start = System.nanoTime();
    Thread[] all = new Thread[threads];
    for (int i = 0; i < threads; i++) {
      all[i] = new Thread(() -> {
        try {
          while (System.nanoTime() - start < nanos) {
            fs.getFileStatus(file);
            done.incrementAndGet();
          }
        } catch (Exception e) {
          throw new RuntimeException(e);
        }
      });
      all[i].start();
    }
    for (Thread t : all) t.join();
    return done.get() * 1e9 / (System.nanoTime() - start);
  }

  static double write(long bytes) throws Exception {
    byte[] buffer = new byte[1 << 20];
    new java.util.Random(1).nextBytes(buffer);
    long start = System.nanoTime();
    try (FSDataOutputStream out = fs.create(file, true)) {
      for (long n = 0; n < bytes; n += buffer.length) out.write(buffer);
    }
    return bytes / 1e6 * 1e9 / (System.nanoTime() - start);
  }

  static double read(long bytes) throws Exception {
    byte[] buffer = new byte[1 << 20];
    long start = System.nanoTime(), n = 0;
    try (FSDataInputStream in = fs.open(file)) {
      for (int k; (k = in.read(buffer)) >= 0; ) n += k;
    }
    if (n != bytes) throw new RuntimeException("read " + n + " bytes of " + bytes);
    return bytes / 1e6 * 1e9 / (System.nanoTime() - start);
  }
}
