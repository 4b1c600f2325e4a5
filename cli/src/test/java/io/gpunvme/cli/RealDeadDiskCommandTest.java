package io.gpunvme.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * A command on a controller whose disk has died says so in one line and ends. Whoever can kill the
 * disk waits for the words "kill disk" in the file that {@code gpunvme.kill-disk} names; it may be
 * dead already.
 */
@Tag("qemu")
class RealDeadDiskCommandTest {
  private static final String DEVICE = System.getProperty("gpunvme.device", "");
  private static final String COMMAND = System.getProperty("gpunvme.command", "");
  private static final String SIGNAL = System.getProperty("gpunvme.kill-disk", "");
  private static final long DEADLINE_SECONDS = 60;

  @TempDir Path folder;

  @Test
  void aCommandSaysSoInOneLineAndEnds() throws Exception {
    assumeTrue(
        !DEVICE.isEmpty() && !COMMAND.isEmpty() && !SIGNAL.isEmpty(),
        "nobody kills the disk: no -Dgpunvme.kill-disk=FILE is given");
    Files.writeString(Path.of(SIGNAL), "guest: kill disk\n", StandardOpenOption.WRITE);
    Path out = folder.resolve("out");
    Path log = folder.resolve("log");
    Process process =
        new ProcessBuilder(
                List.of(
                    COMMAND,
                    "read",
                    DEVICE,
                    "--lba",
                    "0",
                    "--bytes",
                    "400MiB",
                    "--out",
                    out.toString()))
            .redirectErrorStream(true)
            .redirectOutput(log.toFile())
            .start();
    try {
      assertThat(process.waitFor(DEADLINE_SECONDS, TimeUnit.SECONDS)).as("ended").isTrue();
    } finally {
      process.destroyForcibly();
    }
    assertThat(process.exitValue()).isEqualTo(ExitCode.FAILURE);
    assertThat(Files.readAllLines(log))
        .singleElement()
        .asString()
        .startsWith("gpunvme read: Read failed: ")
        .contains(" LBA ");
    assertThat(out).doesNotExist();
  }
}
