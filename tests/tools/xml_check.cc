#include "xml_check.h"

#include <libxml/parser.h>
#include <libxml/xmlerror.h>

#include <fstream>
#include <sstream>

namespace tensorsmith::testing {

std::string xml_problem(const std::string& text) {
  xmlDocPtr document = xmlReadMemory(text.data(), static_cast<int>(text.size()), "text.xml", nullptr,
                                     XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
  if (document != nullptr) {
    xmlFreeDoc(document);
    return "";
  }
  const auto* error = xmlGetLastError();
  if (error == nullptr || error->message == nullptr) return "no XML";
  return "line " + std::to_string(error->line) + ": " + error->message;
}

std::string xml_problem_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return path + " cannot be opened";
  std::ostringstream text;
  text << file.rdbuf();
  return xml_problem(text.str());
}

}  // namespace tensorsmith::testing
