package io.gpunvme.tools.sample;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.fail;

import io.gpunvme.base.InvalidRequestException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class SampleModelTest {
  @TempDir Path folder;

  private Path write(long bytes, long seed, String name) throws IOException {
    Path file = folder.resolve(name);
    SampleModel.of(bytes, seed).write(file, written -> {});
    return file;
  }

  @ParameterizedTest
  @ValueSource(longs = {64 << 10, (64 << 10) + 1, 100_003, 1 << 20, 3_333_333, 20 << 20})
  void isAValidFileOfExactlyTheSizeThatWasAskedFor(long bytes) throws IOException {
    SampleModel model = SampleModel.of(bytes, 1);
    Path file = folder.resolve("model");
    AtomicLong progress = new AtomicLong();
    model.write(file, progress::addAndGet);

    assertThat(Files.size(file)).isEqualTo(bytes);
    assertThat(model.bytes()).isEqualTo(bytes);
    assertThat(progress).hasValue(bytes);
    SafetensorsFile read = SafetensorsFile.read(file);
    assertThat(read.tensors).hasSize(model.tensorCount());
    assertThat(read.dataStart % 4096).as("data starts on a page").isZero();
  }

  @Test
  void everySizeCanBeLaidOut() {
    long seed = Long.getLong("gpunvme.seed", System.nanoTime());
    SplittableRandom random = new SplittableRandom(seed);
    for (int i = 0; i < 2000; i++) {
      long bytes = SampleModel.MIN_BYTES + random.nextLong(1L << random.nextInt(17, 40));
      assertThat(SampleModel.of(bytes, 1).bytes()).as("seed %d", seed).isEqualTo(bytes);
    }
  }

  @Test
  void hasManyDtypesAScalarAndAnEmptyTensor() throws IOException {
    SafetensorsFile read = SafetensorsFile.read(write(4 << 20, 1, "model"));

    assertThat(
            read.tensors.values().stream()
                .map(SafetensorsFile.Tensor::dtype)
                .collect(Collectors.toSet()))
        .contains("F32", "F16", "BF16", "I8", "U8", "I64", "BOOL", "F8_E4M3", "F8_E5M2", "F64");
    assertThat(read.tensors.values()).anyMatch(t -> t.shape().isEmpty());
    assertThat(read.tensors.values()).anyMatch(t -> t.shape().contains(0L));
    assertThat(read.tensors.keySet()).contains("layers.0.attention.qkv.weight");
    assertThat(read.metadata).containsEntry("format", "pt").containsEntry("seed", "1");
  }

  @Test
  void tensorsAreAlignedToTheirElements() throws IOException {
    for (SafetensorsFile.Tensor t : SafetensorsFile.read(write(1 << 20, 1, "m")).tensors.values()) {
      assertThat(t.begin() % t.bytesPerElement()).as(t.name()).isZero();
    }
  }

  @Test
  void floatsAreFiniteAndTruthValuesZeroOrOne() throws IOException {
    SafetensorsFile read = SafetensorsFile.read(write(2 << 20, 7, "model"));
    for (SafetensorsFile.Tensor t : read.tensors.values()) {
      ByteBuffer data = read.data;
      for (long at = t.begin(); at < t.end(); at += t.bytesPerElement()) {
        if (!plausible(t.dtype(), data, (int) at)) {
          fail("%s at %d", t.name(), at);
        }
      }
    }
  }

  private static boolean plausible(String dtype, ByteBuffer data, int at) {
    return switch (dtype) {
      case "F64" -> Double.isFinite(data.getDouble(at));
      case "F32" -> Float.isFinite(data.getFloat(at));
      case "BF16" -> Float.isFinite(Float.intBitsToFloat(data.getShort(at) << 16));
      case "F16" -> Float.isFinite(Float.float16ToFloat(data.getShort(at)));
      case "F8_E4M3" -> (data.get(at) & 0x7F) != 0x7F;
      case "F8_E5M2" -> (data.get(at) & 0x7C) != 0x7C;
      case "BOOL" -> data.get(at) == 0 || data.get(at) == 1;
      default -> true;
    };
  }

  @Test
  void sizeAndSeedDecideEveryByte() throws IOException {
    Path one = write(3 << 20, 5, "one");

    assertThat(Files.mismatch(one, write(3 << 20, 5, "same"))).isEqualTo(-1);
    assertThat(Files.mismatch(one, write(3 << 20, 6, "other"))).isNotEqualTo(-1);
  }

  @Test
  void doesNotRepeatItself() throws IOException {
    // A page that were equal to another would hide blocks that arrived in the wrong place.
    SafetensorsFile read = SafetensorsFile.read(write(8 << 20, 5, "one"));
    long pages = read.data.capacity() / 4096;
    long different =
        LongStream.range(0, pages)
            .mapToObj(page -> read.data.slice((int) (page * 4096), 4096))
            .distinct()
            .count();
    assertThat(different).isEqualTo(pages);
  }

  @Test
  void refusesSizesItCannotMake() {
    assertThatThrownBy(() -> SampleModel.of(SampleModel.MIN_BYTES - 1, 1))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("65535");
    assertThatThrownBy(() -> SampleModel.of(SampleModel.MAX_BYTES + 1, 1))
        .isInstanceOf(InvalidRequestException.class);
  }

  @Test
  void overwritesNothing() throws IOException {
    Path file = write(64 << 10, 1, "model");
    byte[] before = Files.readAllBytes(file);

    assertThatThrownBy(() -> SampleModel.of(64 << 10, 2).write(file, written -> {}))
        .isInstanceOf(FileAlreadyExistsException.class);
    assertThat(file).hasBinaryContent(before);
  }

  @Test
  void leavesNoPartOfAFileBehind() {
    Path file = folder.resolve("model");
    assertThatThrownBy(
            () ->
                SampleModel.of(8 << 20, 2)
                    .write(
                        file,
                        written -> {
                          throw new IllegalStateException("enough");
                        }))
        .hasMessage("enough");
    assertThat(file).doesNotExist();
  }
}
