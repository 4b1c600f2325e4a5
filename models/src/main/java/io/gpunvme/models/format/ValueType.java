package io.gpunvme.models.format;

import java.util.Optional;

/** The types of metadata values, in the order of GGUF's numbers. */
public enum ValueType {
  /** Unsigned, 8 bits. */
  U8(1),
  /** Signed, 8 bits. */
  I8(1),
  /** Unsigned, 16 bits. */
  U16(2),
  /** Signed, 16 bits. */
  I16(2),
  /** Unsigned, 32 bits. */
  U32(4),
  /** Signed, 32 bits. */
  I32(4),
  /** Single precision. */
  F32(4),
  /** True or false. */
  BOOL(1),
  /** Text; the only type that safetensors has. */
  STRING(0),
  /** Values of one type, perhaps arrays again. */
  ARRAY(0),
  /** Unsigned, 64 bits. */
  U64(8),
  /** Signed, 64 bits. */
  I64(8),
  /** Double precision. */
  F64(8);

  private final int bytes;

  ValueType(int bytes) {
    this.bytes = bytes;
  }

  /** The type with this number in GGUF. */
  static Optional<ValueType> ofGguf(long id) {
    return id < 0 || id >= values().length ? Optional.empty() : Optional.of(values()[(int) id]);
  }

  /** Bytes in GGUF; 0 for those whose values differ in length. */
  int bytes() {
    return bytes;
  }
}
