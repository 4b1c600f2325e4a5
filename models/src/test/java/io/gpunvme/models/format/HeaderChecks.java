package io.gpunvme.models.format;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.storage.fs.BytesReader;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;

/** What holds of every header. */
final class HeaderChecks {
  private HeaderChecks() {}

  /** What whoever uses a header relies on; reads all arrays. */
  static void checkConsistent(ModelHeader header, BytesReader reader) {
    Set<String> names = new HashSet<>();
    long at = header.dataOffset();
    for (TensorInfo tensor : header.tensors()) {
      assertThat(names.add(tensor.name())).isTrue();
      assertThat(tensor.offset()).isGreaterThanOrEqualTo(at);
      assertThat(tensor.offset() - header.dataOffset()).matches(o -> o % header.alignment() == 0);
      assertThat(tensor.end()).isLessThanOrEqualTo(reader.size());
      assertThat(tensor.bytes())
          .isEqualTo(
              tensor.type().bytes(Arrays.stream(tensor.shape()).reduce(1, Math::multiplyExact)));
      at = tensor.end();
    }
    header.metadata().values().forEach(HeaderChecks::readAll);
  }

  private static void readAll(MetaValue value) {
    assertThat(value.toString()).isNotNull();
    if (value instanceof MetaValue.Items items) {
      items.forEach(HeaderChecks::readAll);
    }
  }
}
