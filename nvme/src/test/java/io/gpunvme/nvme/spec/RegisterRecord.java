package io.gpunvme.nvme.spec;

import java.lang.reflect.InvocationTargetException;
import java.util.stream.Collectors;

/** A register driven by the names of its fields; values as raw longs. */
record RegisterRecord(Class<?> type, Class<?> word) {
  static RegisterRecord of(String name) throws ClassNotFoundException {
    Class<?> type = Class.forName(RegisterRecord.class.getPackageName() + "." + name);
    return new RegisterRecord(type, type.getRecordComponents()[0].getType());
  }

  BitField field(String name) throws ReflectiveOperationException {
    return (BitField) type.getField(name).get(null);
  }

  long get(long value, String field) throws ReflectiveOperationException {
    BitField bits = field(field);
    Register<?> register = create(value);
    long got = register.getLong(bits);
    if (bits.width() < Integer.SIZE && register.get(bits) != got) {
      throw new AssertionError(field + " as an int is " + register.get(bits));
    }
    if (register.isSet(bits) != (got != 0)) {
      throw new AssertionError(field + " is " + got + ", isSet " + register.isSet(bits));
    }
    return got;
  }

  long with(long value, String field, long fieldValue) throws ReflectiveOperationException {
    return number(create(value).with(field(field), fieldValue));
  }

  long with(long value, String field, boolean flag) throws ReflectiveOperationException {
    return number(create(value).with(field(field), flag));
  }

  long listed(long value, String field) throws ReflectiveOperationException {
    for (FieldValue listed : create(value).fields()) {
      if (listed.name().equals(field)) {
        return (Long) listed.value();
      }
    }
    throw new AssertionError(field + " is not listed");
  }

  String names() throws ReflectiveOperationException {
    return create(0).fields().stream().map(f -> f.name() + " ").collect(Collectors.joining());
  }

  /** The value as the register holds it: 32 or 64 bits. */
  long cut(long value) {
    return word == int.class ? (int) value : value;
  }

  private Register<?> create(long value) throws ReflectiveOperationException {
    try {
      Object raw = word == int.class ? (Object) (int) value : (Object) value;
      return (Register<?>) type.getConstructor(word).newInstance(raw);
    } catch (InvocationTargetException e) {
      throw new AssertionError(e);
    }
  }

  private static long number(Object register) throws ReflectiveOperationException {
    return ((Number) register.getClass().getMethod("value").invoke(register)).longValue();
  }

  @Override
  public String toString() {
    return type.getSimpleName();
  }
}
