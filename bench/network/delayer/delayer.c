// delayer QUEUE MICROSECONDS holds every packet of a netfilter queue for a fixed time
// and lets them go in order. lab builds and starts it where the kernel has no netem.
// The bytes of packets stay in the kernel.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_queue.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

enum { held = 1 << 18 };  // packets at most; beyond half of it the kernel lets them pass
static struct { uint32_t id; int64_t due; } ring[held];
static int sock;
static uint16_t queue;

static void die(const char *what) { perror(what); exit(1); }

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static char request[256];
static size_t used;

static void begin(int type) {
  memset(request, 0, sizeof request);
  struct nlmsghdr *h = (void *)request;
  h->nlmsg_type = NFNL_SUBSYS_QUEUE << 8 | type;
  h->nlmsg_flags = NLM_F_REQUEST;
  struct nfgenmsg *g = NLMSG_DATA(h);
  g->version = NFNETLINK_V0;
  g->res_id = htons(queue);
  used = NLMSG_LENGTH(sizeof *g);
}

static void attribute(int type, const void *data, size_t n) {
  struct nlattr *a = (void *)(request + used);
  a->nla_type = type;
  a->nla_len = NLA_HDRLEN + n;
  memcpy((char *)a + NLA_HDRLEN, data, n);
  used += NLA_ALIGN(a->nla_len);
}

static void finish(void) {
  ((struct nlmsghdr *)request)->nlmsg_len = used;
  if (send(sock, request, used, 0) < 0) die("delayer: send");
}

// packet returns 1 and the number of the packet that a message announces.
static int packet(struct nlmsghdr *h, size_t length, uint32_t *id) {
  if (h->nlmsg_type == NLMSG_ERROR) {
    errno = -((struct nlmsgerr *)NLMSG_DATA(h))->error;
    if (errno) die("delayer: kernel");
    return 0;
  }
  if ((h->nlmsg_type & 0xff) != NFQNL_MSG_PACKET) return 0;
  char *at = (char *)h + NLMSG_LENGTH(sizeof(struct nfgenmsg)), *end = (char *)h + length;
  while (end - at >= NLA_HDRLEN) {
    struct nlattr *a = (void *)at;
    if (a->nla_len < NLA_HDRLEN) return 0;
    if ((a->nla_type & NLA_TYPE_MASK) == NFQA_PACKET_HDR) {
      *id = ntohl(((struct nfqnl_msg_packet_hdr *)(at + NLA_HDRLEN))->packet_id);
      return 1;
    }
    at += NLA_ALIGN(a->nla_len);
  }
  return 0;
}

int main(int argc, char **argv) {
  if (argc != 3) return fprintf(stderr, "usage: delayer QUEUE MICROSECONDS\n"), 2;
  queue = atoi(argv[1]);
  int64_t delay = atoll(argv[2]) * 1000;
  struct sockaddr_nl own = {.nl_family = AF_NETLINK};
  sock = socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER);
  if (sock < 0 || bind(sock, (void *)&own, sizeof own) < 0) die("delayer: netlink");
  int bytes = 32 << 20, yes = 1;
  setsockopt(sock, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes);
  setsockopt(sock, SOL_NETLINK, NETLINK_NO_ENOBUFS, &yes, sizeof yes);

  struct nfqnl_msg_config_cmd ours = {.command = NFQNL_CFG_CMD_BIND, .pf = htons(AF_INET)};
  struct nfqnl_msg_config_params headers = {.copy_mode = NFQNL_COPY_META};
  uint32_t most = htonl(held / 2), flags = htonl(NFQA_CFG_F_GSO | NFQA_CFG_F_FAIL_OPEN);
  begin(NFQNL_MSG_CONFIG);
  attribute(NFQA_CFG_CMD, &ours, sizeof ours);
  finish();
  begin(NFQNL_MSG_CONFIG);
  attribute(NFQA_CFG_PARAMS, &headers, sizeof headers);
  attribute(NFQA_CFG_QUEUE_MAXLEN, &most, sizeof most);
  attribute(NFQA_CFG_FLAGS, &flags, sizeof flags);
  attribute(NFQA_CFG_MASK, &flags, sizeof flags);
  finish();
  prctl(PR_SET_TIMERSLACK, 1);
  struct sched_param first = {.sched_priority = 10};  // on time while all cores compute
  sched_setscheduler(0, SCHED_RR, &first);

  static char buffer[4096];
  uint32_t head = 0, tail = 0;  // next to go; next free
  for (;;) {
    int64_t t = now();
    uint32_t from = head;
    while (head != tail && ring[head % held].due <= t) head++;
    if (head != from) {  // a verdict is for all packets up to its number
      struct nfqnl_msg_verdict_hdr go = {htonl(NF_ACCEPT), htonl(ring[(head - 1) % held].id)};
      begin(NFQNL_MSG_VERDICT_BATCH);
      attribute(NFQA_VERDICT_HDR, &go, sizeof go);
      finish();
    }
    int64_t left = head == tail ? 0 : ring[head % held].due - now();
    if (left < 0) left = 0;
    struct timespec wait = {left / 1000000000, left % 1000000000};
    struct pollfd in = {.fd = sock, .events = POLLIN};
    if (ppoll(&in, 1, head == tail ? NULL : &wait, NULL) <= 0) continue;
    t = now();
    // As many as there are, but not so long that others come late.
    for (int i = 0; i < 64; i++) {
      ssize_t n = recv(sock, buffer, sizeof buffer, MSG_DONTWAIT);
      if (n < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOBUFS)) break;
      if (n < 0) die("delayer: receive");
      uint32_t id;
      if (packet((void *)buffer, n, &id)) {
        ring[tail % held].id = id;
        ring[tail++ % held].due = t + delay;
      }
    }
  }
}
