/**
 * Where the bytes of an embedded namespace live: memory, a file, or nowhere.
 *
 * <p>In: flat byte arrays with read, write, zero, trim and flush. Out: logical blocks, status codes
 * and everything else NVMe (one package up). A failure is an {@link java.io.IOException}; the
 * controller turns it into a media error.
 */
@NullMarked
package io.gpunvme.sim.media;

import org.jspecify.annotations.NullMarked;
