/* Preloaded into the program: makes its measurement worker report correct outputs as wrong. A message is a
 * header (measure/wire.cc), then the payload, whose first byte is the outcome. */
#define _GNU_SOURCE
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MAGIC = 0x57534d54, RESULT = 5, OK = 0, WRONG_OUTPUT = 7 };

static int is_worker;

__attribute__((constructor)) static void look(int argc, char** argv) {
  is_worker = argc > 1 && strcmp(argv[1], "__worker") == 0;
}

ssize_t sendmsg(int socket, const struct msghdr* message, int flags) {
  static int is_result = 0;
  if (is_worker && message->msg_iovlen == 1) {
    unsigned char* bytes = message->msg_iov[0].iov_base;
    uint32_t header[2];
    if (is_result) {
      if (bytes[0] == OK) bytes[0] = WRONG_OUTPUT;
      is_result = 0;
    } else if (message->msg_iov[0].iov_len == 16) {
      memcpy(header, bytes, sizeof header);
      is_result = header[0] == MAGIC && header[1] == RESULT;
    }
  }
  return syscall(SYS_sendmsg, socket, message, flags);
}
