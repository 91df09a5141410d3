# Travel: reads are free; bookings, reminders and letters only when the user asks for them.

reading(/get_user_information).
reading(/get_all_hotels_in_city).
reading(/get_hotels_prices).
reading(/get_rating_reviews_for_hotels).
reading(/get_hotels_address).
reading(/get_all_restaurants_in_city).
reading(/get_cuisine_type_for_restaurants).
reading(/get_restaurants_address).
reading(/get_rating_reviews_for_restaurants).
reading(/get_dietary_restrictions_for_all_restaurants).
reading(/get_contact_information_for_restaurants).
reading(/get_price_for_restaurants).
reading(/check_restaurant_opening_hours).
reading(/get_all_car_rental_companies_in_city).
reading(/get_car_types_available).
reading(/get_rating_reviews_for_car_rental).
reading(/get_car_fuel_options).
reading(/get_car_rental_address).
reading(/get_car_price_per_day).
reading(/search_calendar_events).
reading(/get_day_calendar_events).
reading(/get_flight_information).

means("calendar", /create_calendar_event).
means("reminder", /create_calendar_event).
means("remind", /create_calendar_event).
means("event", /create_calendar_event).
means("cancel", /cancel_calendar_event).

means("reservation", /reserve_hotel).
means("reserve", /reserve_hotel).
means("book", /reserve_hotel).
means("reservation", /reserve_restaurant).
means("reserve", /reserve_restaurant).
means("book", /reserve_restaurant).
means("reservation", /reserve_car_rental).
means("reserve", /reserve_car_rental).
means("book", /reserve_car_rental).
means("rent", /reserve_car_rental).

means("send", /send_email).
means("email", /send_email).
means("mail", /send_email).
means("write", /send_email).

# What is booked is of the kind that the user speaks of, and was typed.
guarded(/reserve_hotel, /hotel).
guarded(/reserve_hotel, /start_day).
guarded(/reserve_hotel, /end_day).
guarded(/reserve_restaurant, /restaurant).
guarded(/reserve_car_rental, /company).
guarded(/send_email, /recipients).
guarded(/send_email, /cc).
guarded(/send_email, /bcc).
guarded(/create_calendar_event, /participants).
guarded(/create_calendar_event, /title).
guarded(/cancel_calendar_event, /event_id).

vouched(Action, /title, Value) :- tool(Action, /create_calendar_event), composed(Action, /title, Value).

named_flows(/get_all_hotels_in_city, "line", /reserve_hotel, /hotel).
named_flows(/get_all_restaurants_in_city, "line", /reserve_restaurant, /restaurant).
named_flows(/get_all_car_rental_companies_in_city, "line", /reserve_car_rental, /company).
named_flows(/search_calendar_events, "id_", /cancel_calendar_event, /event_id).
named_flows(/get_day_calendar_events, "id_", /cancel_calendar_event, /event_id).
flows(/get_user_information, "Email", /send_email, /recipients).

text_flows(/get_all_hotels_in_city, /reserve_hotel, /hotel).
text_flows(/get_all_restaurants_in_city, /reserve_restaurant, /restaurant).
text_flows(/get_all_car_rental_companies_in_city, /reserve_car_rental, /company).

speaking(/send_email, /body).
