import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.Accelerators;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.TransferResult;
import io.gpunvme.storage.path.StorageException;
import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;

/** Reads a file to the accelerator, piece by piece, and checks that all of it arrived. */
public final class ReadFile {
  private static final int PIECE = 64 << 20;

  private ReadFile() {}

  public static void main(String[] arguments) throws IOException, NoSuchAlgorithmException {
    if (arguments.length != 1) {
      System.err.println("usage: ReadFile FILE");
      System.exit(2);
    }
    try {
      read(arguments[0]);
    } catch (StorageException e) {
      // It says which file, where in it, what failed, and what to do next.
      System.err.println(e.getMessage());
      System.exit(1);
    }
  }

  private static void read(String file) throws IOException, NoSuchAlgorithmException {
    // A GPU if there is one that works, else the CPU stand-in, whose memory is host memory.
    Accelerators.Choice choice = Accelerators.best();
    MessageDigest arrived = MessageDigest.getInstance("SHA-256");
    try (Accelerator accelerator = choice.accelerator();
        GpuStorage storage = GpuStorage.open("file:" + file + "?path=auto", accelerator);
        DeviceBuffer buffer = accelerator.allocate(PIECE);
        Arena arena = Arena.ofConfined()) {
      System.out.printf("accelerator: %s (%s)%n", accelerator.name(), choice.reason());
      MemorySegment back = arena.allocate(PIECE);
      for (long offset = 0; offset < storage.size(); offset += PIECE) {
        long bytes = Math.min(PIECE, storage.size() - offset);
        TransferResult result = storage.read(offset, buffer, 0, bytes);
        System.out.printf(
            "%d bytes at %d arrived by the path %s%n", result.bytes(), offset, result.path());
        // A kernel would find them at buffer.deviceAddress(). Here they are copied back.
        buffer.copyToHost(0, back.asSlice(0, bytes));
        arrived.update(back.asSlice(0, bytes).asByteBuffer());
      }
    }
    String expected = sha256(Path.of(file));
    String actual = HexFormat.of().formatHex(arrived.digest());
    if (!actual.equals(expected)) {
      throw new IllegalStateException("SHA-256 " + actual + " arrived instead of " + expected);
    }
    System.out.println("SHA-256 of the file and of what arrived: " + actual);
  }

  private static String sha256(Path file) throws IOException, NoSuchAlgorithmException {
    MessageDigest digest = MessageDigest.getInstance("SHA-256");
    try (InputStream in = Files.newInputStream(file)) {
      byte[] some = new byte[1 << 16];
      for (int n = in.read(some); n >= 0; n = in.read(some)) {
        digest.update(some, 0, n);
      }
    }
    return HexFormat.of().formatHex(digest.digest());
  }
}
