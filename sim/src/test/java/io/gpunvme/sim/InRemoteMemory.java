package io.gpunvme.sim;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.ExtensionContext;

/** Tests in which all queues and buffers of a {@link RawHost} are remote memory. */
@Target(ElementType.TYPE)
@Retention(RetentionPolicy.RUNTIME)
@ExtendWith(InRemoteMemory.Switch.class)
@interface InRemoteMemory {
  /** Sets the default for all hosts of the class; test classes do not run at the same time. */
  final class Switch implements BeforeAllCallback, AfterAllCallback {
    @Override
    public void beforeAll(ExtensionContext context) {
      RawHost.remoteByDefault = true;
    }

    @Override
    public void afterAll(ExtensionContext context) {
      RawHost.remoteByDefault = context.getRequiredTestClass().getEnclosingClass() != null;
    }
  }
}
