package org.apache.hadoop.io;

import java.io.File;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.RandomAccessFile;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * Stands in for Hadoop's class of this name in NodeManagers of tests. Hadoop's asks its native library, which Maven does not have, whose a file is that it
 * opens, and refuses to open any without the library. This one does not ask: all containers of a test run as one user anyway.
 */
public class SecureIOUtils {
  public static RandomAccessFile openForRandomRead(File f, String mode, String owner, String group) throws IOException {
    return new RandomAccessFile(f, mode);
  }

  public static FSDataInputStream openFSDataInputStream(File f, String owner, String group) throws IOException {
    return FileSystem.getLocal(new Configuration()).getRaw().open(new Path(f.getAbsolutePath()));
  }

  public static FileInputStream openForRead(File f, String owner, String group) throws IOException {
    return new FileInputStream(f);
  }

  public static FileOutputStream createForWrite(File f, int permissions) throws IOException {
    if (!f.createNewFile()) {
      throw new AlreadyExistsException("File " + f + " already exists");
    }
    return new FileOutputStream(f);
  }

  /** As Hadoop has it. */
  public static class AlreadyExistsException extends IOException {
    private static final long serialVersionUID = 1L;

    public AlreadyExistsException(String message) {
      super(message);
    }

    public AlreadyExistsException(Throwable cause) {
      super(cause);
    }
  }
}
