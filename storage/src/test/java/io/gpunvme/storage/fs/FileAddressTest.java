package io.gpunvme.storage.fs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.gpunvme.base.InvalidRequestException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** How {@code DEVICE[#N]:/PATH} is read. */
class FileAddressTest {
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "vfio:0000:01:00.0:/models/a.gguf      | vfio:0000:01:00.0         | 0  | /models/a.gguf",
        "vfio:0000:01:00.0#2:/a                | vfio:0000:01:00.0         | 2  | /a",
        "vfio-user:/run/s.sock:/a              | vfio-user:/run/s.sock     | 0  | /a",
        "vfio-user:/run/s.sock                 | vfio-user:/run/s.sock     | 0  | /",
        "sim:file=/tmp/x.img#1:/a              | sim:file=/tmp/x.img       | 1  | /a",
        "sim:size=1GiB,file=/tmp/x.img:/a      | sim:size=1GiB,file=/tmp/x.img | 0 | /a",
        "file:/tmp/ext4.img:/a                 | file:/tmp/ext4.img        | 0  | /a",
        "file:/tmp/ext4.img                    | file:/tmp/ext4.img        | 0  | /",
        "file:/tmp/ext4.img#12                 | file:/tmp/ext4.img        | 12 | /",
        "/tmp/ext4.img:/a                      | /tmp/ext4.img             | 0  | /a",
        "/tmp/ext4.img                         | /tmp/ext4.img             | 0  | /",
        "ext4.img:/a b/c                       | ext4.img                  | 0  | /a b/c",
        "stripe:file:/a,file:/b;unit=1M:/x     | stripe:file:/a,file:/b;unit=1M | 0 | /x",
        "stripe:file:/a,file:/b                | stripe:file:/a,file:/b    | 0  | /",
        "/tmp/x:/y:/z                          | /tmp/x:/y                 | 0  | /z",
        "/tmp/x:/y\\:/z                        | /tmp/x                    | 0  | /y:/z",
        "/tmp/x\\:/y                           | /tmp/x:/y                 | 0  | /",
        "/tmp/x\\\\:/y                         | /tmp/x\\                  | 0  | /y",
        "/tmp/x\\#1:/y                         | /tmp/x#1                  | 0  | /y",
        "/tmp/x\\\\#1:/y                       | /tmp/x\\                  | 1  | /y",
        "/tmp/x#1x:/y                          | /tmp/x#1x                 | 0  | /y",
        "/tmp/x#1#2:/y                         | /tmp/x#1                  | 2  | /y",
        "/tmp/x:/y#2                           | /tmp/x                    | 0  | /y#2",
        "/tmp/x:/                              | /tmp/x                    | 0  | /",
      })
  void addresses(String text, String device, int partition, String path) {
    FileAddress address = FileAddress.parse(text);

    assertThat(address.device()).isEqualTo(device);
    assertThat(address.partition()).isEqualTo(partition);
    assertThat(address.path()).isEqualTo(path);
  }

  @ParameterizedTest
  @ValueSource(strings = {"", ":/a", "#1:/a", "/tmp/x#0:/a"})
  void addressesThatAreNone(String text) {
    assertThatExceptionOfType(InvalidRequestException.class)
        .isThrownBy(() -> FileAddress.parse(text));
  }

  @Test
  void asText() {
    FileAddress address = FileAddress.parse("sim:file=/tmp/x.img#1:/a");
    assertThat(address).hasToString("sim:file=/tmp/x.img#1:/a");
    assertThat(address.explicit()).isTrue();
    assertThat(address.with("/b")).hasToString("sim:file=/tmp/x.img#1:/b");
    assertThat(FileAddress.parse("/tmp/x").explicit()).isFalse();
  }
}
