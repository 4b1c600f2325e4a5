package io.gpunvme.storage;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.cuda.FakeDriver;
import io.gpunvme.cuda.cufile.CuFile;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.storage.injection.OwnProcess;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.cufile.CuFilePath;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/**
 * A process of its own, since others load libcufile: opens storages, reads, has them explained, and
 * prints after each whether libcufile is in its memory. In the end it loads libcufile: if that
 * cannot be seen, nothing here means anything.
 */
final class NoCuFileProbe {
  private static final int SIZE = 1 << 20;

  private NoCuFileProbe() {}

  /**
   * Starts one and returns what it printed.
   *
   * @param accelerator {@code cpu}, {@code gpu}, or the file of a library that stands in for
   *     libcuda
   * @param folder for the file that is read
   * @param environment more of it
   */
  static List<String> run(String accelerator, Path folder, Map<String, String> environment)
      throws IOException, InterruptedException {
    ProcessBuilder builder =
        new ProcessBuilder(
            Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            "-XX:+UseSerialGC",
            "--enable-native-access=ALL-UNNAMED",
            "-cp",
            System.getProperty("java.class.path"),
            NoCuFileProbe.class.getName(),
            accelerator,
            folder.toString());
    builder.environment().putAll(environment);
    Process process = builder.redirectErrorStream(true).start();
    try {
      String text = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
      assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue();
      assertThat(process.exitValue()).as(() -> text).isZero();
      System.out.print(text);
      return text.lines().filter(line -> line.matches("(un)?seen: .*")).toList();
    } finally {
      process.destroyForcibly();
    }
  }

  public static void main(String[] arguments) throws IOException {
    Path file = Files.write(Path.of(arguments[1], "probe.bin"), new byte[SIZE]);
    Path inMemory = Files.createTempFile(Path.of("/dev/shm"), "gpunvme", ".bin");
    try (Accelerator accelerator = accelerator(arguments[0])) {
      say("accelerator");
      Files.write(inMemory, new byte[SIZE]);
      for (String path : List.of("pinned", "mmap", "auto")) {
        // With nvidia-fs it may be the best; then it is loaded, and rightly so.
        Path of = mayBeChosen(path, file, accelerator) ? inMemory : file;
        use(of + "?path=" + path, accelerator);
        say(path);
      }
      refused(inMemory + "?path=cufile", accelerator);
      say("refused");
    } finally {
      Files.delete(inMemory);
    }
    CuFile.load();
    say("loaded");
  }

  private static Accelerator accelerator(String name) {
    return switch (name) {
      case "cpu" -> CpuAccelerator.open();
      case "gpu" -> GpuAccelerator.open();
      default -> GpuAccelerator.open(FakeDriver.load(Path.of(name)).device(0));
    };
  }

  private static boolean mayBeChosen(String path, Path file, Accelerator accelerator) {
    return path.equals("auto") && CuFilePath.judge(file.toString(), accelerator).automatic();
  }

  private static void use(String address, Accelerator accelerator) {
    try (GpuStorage storage = GpuStorage.open(address, accelerator);
        DeviceBuffer buffer = accelerator.allocate(SIZE)) {
      storage.register(buffer);
      assertThat(storage.read(3, buffer, 5, SIZE - 100).bytes()).isEqualTo(SIZE - 100);
      System.out.println(storage.explain());
    }
  }

  private static void refused(String address, Accelerator accelerator) {
    try {
      GpuStorage.open(address, accelerator).close();
      throw new AssertionError(address + " was opened");
    } catch (StorageException e) {
      assertThat(e.kind()).isEqualTo(StorageException.Kind.UNSUPPORTED);
      System.out.println(e.getMessage());
    }
  }

  private static void say(String after) {
    boolean seen = OwnProcess.maps().anyMatch(line -> line.contains("libcufile"));
    System.out.println((seen ? "seen: " : "unseen: ") + after);
  }
}
