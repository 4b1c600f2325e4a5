package io.gpunvme.nvme.spec;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Locale;
import java.util.stream.Collectors;

/**
 * A register record driven by the names of its fields; values as raw longs, booleans as 0 and 1.
 */
record RegisterRecord(Class<?> type, Class<?> word) {
  static RegisterRecord of(String name) throws ClassNotFoundException {
    Class<?> type = Class.forName(RegisterRecord.class.getPackageName() + "." + name);
    return new RegisterRecord(type, type.getRecordComponents()[0].getType());
  }

  boolean hasCopies() {
    for (Method method : type.getMethods()) {
      if (method.getName().startsWith("with")) {
        return true;
      }
    }
    return false;
  }

  long get(long value, String field) throws ReflectiveOperationException {
    return number(method(field.toLowerCase(Locale.ROOT)).invoke(create(value)));
  }

  long with(long value, String field, long fieldValue) throws ReflectiveOperationException {
    Class<?> parameter = method(field.toLowerCase(Locale.ROOT)).getReturnType();
    String name = "with" + field.charAt(0) + field.substring(1).toLowerCase(Locale.ROOT);
    Object copy = type.getMethod(name, parameter).invoke(create(value), box(parameter, fieldValue));
    return number(method("value").invoke(copy));
  }

  long listed(long value, String field) throws ReflectiveOperationException {
    for (FieldValue listed : ((Structure) create(value)).fields()) {
      if (listed.name().equals(field)) {
        return (Long) listed.value();
      }
    }
    throw new AssertionError(field + " is not listed");
  }

  String names() throws ReflectiveOperationException {
    return ((Structure) create(0))
        .fields().stream().map(f -> f.name() + " ").collect(Collectors.joining());
  }

  /** The value as the register holds it: 32 or 64 bits. */
  long cut(long value) {
    return word == int.class ? (int) value : value;
  }

  private Object create(long value) throws ReflectiveOperationException {
    try {
      return type.getConstructor(word).newInstance(box(word, value));
    } catch (InvocationTargetException e) {
      throw new AssertionError(e);
    }
  }

  private Method method(String name) throws NoSuchMethodException {
    return type.getMethod(name);
  }

  private static Object box(Class<?> type, long value) {
    if (type == boolean.class) {
      return value != 0;
    }
    return type == int.class ? (Object) (int) value : (Object) value;
  }

  private static long number(Object value) {
    if (value instanceof Boolean flag) {
      return flag ? 1 : 0;
    }
    return ((Number) value).longValue();
  }

  @Override
  public String toString() {
    return type.getSimpleName();
  }
}
